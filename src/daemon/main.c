/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feederd: the node's daemon, or, with --private, a job's own.
 *
 * Order of the start: settings, signals, the socket's path (bound, not listening: who waits keeps
 * waiting), threads, listening, readiness. One orderly way out: draining by signalfd; a second
 * signal and an alarm cut it short.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/notify.h"
#include "control/control.h"
#include "daemon/limits.h"
#include "daemon/options.h"
#include "feeder/version.h"
#include "pipeline/pipeline.h"
#include "source/cache_dir.h"

#define STOP_SECONDS 10 /* from the first signal to the exit, whatever hangs */

struct daemon {
	struct options options;
	struct config config;
	struct loop *loop;
	struct watch signals;
	struct server server;
	struct control *control;
	struct pipeline *pipeline;
	unsigned int cpus;
	unsigned int workers;
	char cache_dir[4096];
	char text[CONFIG_TEXT];
};

/* ---- signals ---- */

static void out_of_time(int signal)
{
	(void)signal;
	_exit(0);
}

/* Some file system may hold a thread for ever: the exit does not wait for it. */
static void limit_exit(void)
{
	struct sigaction action = { .sa_handler = out_of_time };

	sigaction(SIGALRM, &action, NULL);
	alarm(STOP_SECONDS);
}

/* The loop has ended, and nothing reads the signals any more while threads are waited for. */
static void end_by_signal(const struct daemon *d)
{
	struct sigaction action = { .sa_handler = out_of_time };
	sigset_t set;

	sigaction(SIGTERM, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (!d->options.private_daemon) {
		sigaction(SIGINT, &action, NULL);
		sigaddset(&set, SIGINT);
	}
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void stop(struct daemon *d)
{
	if (control_draining(d->control)) {
		log_warning("second signal: exit at once");
		_exit(0);
	}
	notify_send("STOPPING=1\nSTATUS=draining");
	log_info("stopping: what is in flight is published");
	limit_exit();
	control_drain(d->control);
}

static void reload(struct daemon *d)
{
	struct config config;

	if (d->options.private_daemon && !d->options.config_file)
		return;
	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(now_ns() / 1000));
	int r = options_config(&d->options, &config, d->text, sizeof(d->text));
	if (r == 0) {
		r = control_reload(d->control, &config, d->text, sizeof(d->text));
		if (r < 0) {
			config_deinit(&config);
		} else {
			config_deinit(&d->config);
			d->config = config;
			log_info("roots and limits were read again: %zu roots", config.root_count);
		}
	}
	if (r < 0)
		log_error("reload: %s; roots and limits stay as they were", d->text);
	notify_send("READY=1");
}

static void signal_ready(struct watch *watch, uint32_t events)
{
	struct daemon *d = CONTAINER_OF(watch, struct daemon, signals);
	struct signalfd_siginfo info;

	(void)events;
	while (read(watch->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(d);
		else
			stop(d);
	}
}

static int watch_signals(struct daemon *d)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	/* Ctrl-C at a trainer is the trainer's: its private daemon lives by its sockets. */
	if (d->options.private_daemon)
		signal(SIGINT, SIG_IGN);
	else
		sigaddset(&set, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_SETMASK, &set, NULL); /* and what was inherited as blocked is open again */
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	int r = loop_watch(d->loop, &d->signals, fd, EPOLLIN, signal_ready);
	if (r < 0)
		fd_close(fd);
	return r;
}

/* ---- start ---- */

static int start_socket(struct daemon *d)
{
	int passed = notify_listen_fds();
	char warning[CONFIG_TEXT] = "";

	if (passed > 1) {
		snprintf(d->text, sizeof(d->text), "%d sockets were passed, one is expected",
			passed);
		return -EINVAL;
	}
	if (passed == 1)
		return server_adopt(&d->server, NOTIFY_LISTEN_START, d->text, sizeof(d->text));
	int r = server_bind(&d->server, d->config.socket ? d->config.socket : CONFIG_SOCKET,
		config_admits_others(&d->config), warning, d->text, sizeof(d->text));
	if (warning[0])
		log_warning("%s", warning);
	return r;
}

static const char *find_cache(struct daemon *d)
{
	if (d->config.cache_dir)
		return d->config.cache_dir;
	return cache_dir_default(d->cache_dir, sizeof(d->cache_dir)) < 0 ? NULL : d->cache_dir;
}

static int start_pipeline(struct daemon *d)
{
	const struct config *config = &d->config;
	struct pipeline_config pipeline = {
		.workers = d->workers,
		.reader = (int)config->reader,
		.readahead_bytes = config->readahead,
		.slots = (unsigned int)config->slots,
		.read_deadline_ns = config->read_deadline_ns,
		.max_pixels = config->max_pixels,
		.max_scans = (uint32_t)config->max_scans,
		.max_memory = config->decode_memory,
		.max_cpu_ns = config->decode_time_ns,
		.lane_event = control_lane_event,
		.open_outside = control_open_outside,
		.context = d->control,
	};

	notify_send("EXTEND_TIMEOUT_USEC=60000000\nSTATUS=starting");
	int r = pipeline_new(&d->pipeline, &pipeline, d->text, sizeof(d->text));
	if (r == 0 && d->text[0])
		log_info("%s", d->text);
	return r;
}

static int start(struct daemon *d)
{
	int r = loop_new(&d->loop);

	snprintf(d->text, sizeof(d->text), "starting: %s", strerror(-r));
	if (r == 0) {
		r = watch_signals(d);
		snprintf(d->text, sizeof(d->text), "signals: %s", strerror(-r));
	}
	if (r == 0)
		r = start_socket(d);
	d->cpus = cpu_allowed();
	d->workers = d->config.workers ? (unsigned int)d->config.workers : d->cpus;
	struct control_options options = {
		.loop = d->loop,
		.config = &d->config,
		.server = &d->server,
		.private_daemon = d->options.private_daemon,
		.cache_dir = find_cache(d),
		.cpus = d->cpus,
		.workers = d->workers,
		.workers_literal = d->config.workers > 0,
		.memory = limits_memory(),
	};
	if (r == 0)
		r = control_new(&d->control, &options, d->text, sizeof(d->text));
	if (r == 0)
		r = start_pipeline(d);
	if (r == 0)
		r = control_serve(d->control, d->pipeline, d->text, sizeof(d->text));
	return r;
}

static void report_ready(struct daemon *d)
{
	struct pipeline_facts facts;

	pipeline_facts(d->pipeline, &facts);
	limits_report(&d->config, d->workers, d->cpus, facts.reader);
	log_info("feederd " FEEDER_VERSION " serves %s, %zu roots",
		d->server.path[0] ? d->server.path : "the socket that was passed",
		d->config.root_count);
	notify_send("READY=1\nSTATUS=serving, %u workers, reader %s", d->workers, facts.reader);
}

static void deinit(struct daemon *d)
{
	control_free(d->control);
	pipeline_free(d->pipeline);
	server_close(&d->server);
	if (d->signals.loop) {
		loop_unwatch(&d->signals);
		fd_close(d->signals.fd);
	}
	loop_free(d->loop);
	config_deinit(&d->config);
	options_deinit(&d->options);
}

int main(int argc, char **argv)
{
	struct daemon d = { 0 };
	int status = 0;

	server_init(&d.server);
	if (options_parse(&d.options, argc, argv, &status) != 0)
		return status;
	log_init();
	if (d.options.private_daemon)
		log_set_level(LOG_LEVEL_WARNING); /* its stderr is the trainer's */
	if (options_config(&d.options, &d.config, d.text, sizeof(d.text)) < 0) {
		log_error("%s", d.text);
		options_deinit(&d.options);
		return 1;
	}
	if (d.options.check_config) {
		printf("the settings are in order: %zu roots\n", d.config.root_count);
		deinit(&d);
		return 0;
	}
	if (d.options.private_daemon)
		setsid(); /* refused to a process that leads one already: as good */
	limits_raise();
	if (start(&d) < 0) {
		log_error("%s", d.text);
		status = 1;
	} else {
		report_ready(&d);
		status = loop_run(d.loop) < 0;
		if (!control_draining(d.control))
			limit_exit();
		end_by_signal(&d);
	}
	deinit(&d);
	return status;
}
