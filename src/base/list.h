/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive doubly linked list; an unlinked node points at itself. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *prev;
	struct list *next;
};

#define LIST_INIT(name)          \
	{                        \
		&(name), &(name) \
	}
#define CONTAINER_OF(ptr, type, name) ((type *)(void *)((char *)(ptr)-offsetof(type, name)))
#define LIST_FOR_EACH(pos, head) \
	for (struct list *pos = (head)->next; pos != (head); pos = pos->next)
#define LIST_FOR_EACH_SAFE(pos, tmp, head)                                     \
	for (struct list *pos = (head)->next, *tmp = pos->next; pos != (head); \
		pos = tmp, tmp = pos->next)

static inline void list_init(struct list *l)
{
	l->prev = l;
	l->next = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/* Links node before pos: with pos the head, at the end. */
static inline void list_add_before(struct list *node, struct list *pos)
{
	node->prev = pos->prev;
	node->next = pos;
	pos->prev->next = node;
	pos->prev = node;
}

static inline void list_append(struct list *head, struct list *node)
{
	list_add_before(node, head);
}

static inline void list_prepend(struct list *head, struct list *node)
{
	list_add_before(node, head->next);
}

static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* First node, unlinked; NULL when empty. */
static inline struct list *list_pop(struct list *head)
{
	struct list *node = head->next;

	if (node == head)
		return NULL;
	list_remove(node);
	return node;
}

/* Moves all of from to the end of to. */
static inline void list_splice(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#endif
