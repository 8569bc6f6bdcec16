#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""order_digest of a lane as torch would have it, without feeder.

An independent witness for tests: the ids come from torch's own DistributedSampler when torch
can be imported, else from the algorithm that torch documents by its source (MT19937 seeded with
the low 32 bits of seed + epoch, then the shuffle of randperm). They are dealt to steps by the
rules of DistributedSampler and DataLoader, and the digest is the sum modulo 2^64, over all valid
places of the lane, of XXH64 (seed 0) of the little-endian u64 (epoch, position, id).

Prints 16 lower-case hex digits on stdout and what it used on stderr. Needs nothing but Python;
numpy and xxhash make it faster.

    torch_digest.py --n 1281167 --world 8 --rank 3 --batch 256 --seed 0 --epochs 2 --tail pad
"""
import argparse
import random
import struct
import sys
from array import array

M64 = (1 << 64) - 1


# ---- XXH64 (seed 0) of little-endian u64 words, fewer than four of them ----

P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def rotl(x, r):
    return ((x << r) | (x >> (64 - r))) & M64


def xxh64(*words):
    assert len(words) < 4  # 32 bytes and more have another form
    h = (P5 + 8 * len(words)) & M64
    for w in words:
        h ^= (rotl(w * P2 & M64, 31) * P1) & M64
        h = (rotl(h, 27) * P1 + P4) & M64
    h = ((h ^ (h >> 33)) * P2) & M64
    h = ((h ^ (h >> 29)) * P3) & M64
    return h ^ (h >> 32)


def sum_numpy(np, epoch, positions, ids):
    u = np.uint64
    rot = lambda x, r: (x << u(r)) | (x >> u(64 - r))
    position = np.array(positions, dtype=u)
    h = np.full(len(position), P5 + 24, dtype=u)
    for w in (np.full(len(position), epoch, dtype=u), position, np.array(ids, dtype=u)):
        h ^= rot(w * u(P2), 31) * u(P1)
        h = rot(h, 27) * u(P1) + u(P4)
    h = (h ^ (h >> u(33))) * u(P2)
    h = (h ^ (h >> u(29))) * u(P3)
    return int((h ^ (h >> u(32))).sum(dtype=u))


def digest_sum(epoch, positions, ids):
    try:
        import xxhash
        pack = struct.Struct('<3Q').pack
        return sum(xxhash.xxh64_intdigest(pack(epoch, p, i)) for p, i in zip(positions, ids)) & M64
    except ImportError:
        pass
    try:
        import numpy
        return sum_numpy(numpy, epoch, positions, ids)
    except ImportError:
        return sum(xxh64(epoch, p, i) for p, i in zip(positions, ids)) & M64


# ---- the order of one epoch ----

def mt19937(seed):
    """Draws of a freshly seeded torch generator: init_genrand, then CPython's own MT19937."""
    state = [seed & 0xFFFFFFFF]
    for j in range(1, 624):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + j) & 0xFFFFFFFF)
    generator = random.Random()
    generator.setstate((3, tuple(state) + (624,), None))
    return lambda: generator.getrandbits(32)


def randperm(n, seed):
    draw = mt19937(seed)
    ids = array('I' if n < 1 << 32 else 'Q', bytes(4 * n if n < 1 << 32 else 8 * n))
    if n < 0xFFFFFFFF // 20:
        for i in range(n):
            ids[i] = i
        for i in range(n - 1):
            z = i + draw() % (n - i)
            ids[i], ids[z] = ids[z], ids[i]
    else:  # torch 2.6 and newer
        for i in range(n):
            z = (draw() << 32 | draw()) % (i + 1)
            ids[i] = ids[z]
            ids[z] = i
    return ids


def splitmix64(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) & M64
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & M64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
        yield z ^ (z >> 31)


def fmix32(h):
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return h ^ (h >> 16)


def feistel(n, seed, epoch, positions=None):
    ceil_log2 = (n - 1).bit_length()
    b = max(1, (ceil_log2 + 1) // 2)
    outputs = splitmix64(xxh64(seed & M64, epoch))
    keys = [next(outputs) & 0xFFFFFFFF for _ in range(8)]
    ids = []
    for x in range(n) if positions is None else positions:
        while True:
            left, right = x >> b, x % (1 << b)
            for k in keys:
                left, right = right, left ^ (fmix32(right ^ k) % (1 << b))
            x = left << b | right
            if x < n:
                break
        ids.append(x)
    return ids


def epoch_order(a, epoch):
    if a.order == 'sequential':
        return range(a.n)
    if a.order == 'feistel':
        return feistel(a.n, a.seed, epoch)
    return randperm(a.n, a.seed + epoch)


# ---- what one rank gets of it, as lists (positions, ids) ----

def torch_sampler(a, world, rank, epoch, drop):
    from torch.utils.data.distributed import DistributedSampler
    sampler = DistributedSampler(range(a.n), num_replicas=world, rank=rank,
                                 shuffle=a.order == 'torch', seed=a.seed, drop_last=drop)
    sampler.set_epoch(epoch)
    return list(sampler)


def own_sampler(a, world, rank, epoch, drop):
    """DistributedSampler's rule, on our own permutation."""
    indices = list(epoch_order(a, epoch))
    per_rank = a.n // world if drop else -(-a.n // world)
    total = per_rank * world
    while len(indices) < total:
        indices += indices[:total - len(indices)]
    return indices[rank:total:world]


def lane(a, rank, epoch, sampler):
    """A rank's places of an epoch: DataLoader's batches of B, in groups of K."""
    per_group = a.batch * a.accumulate
    ids = sampler(a, a.world, rank, epoch, a.tail == 'drop')
    if a.tail == 'drop':
        ids = ids[:len(ids) // per_group * per_group]
    elif a.tail == 'pad' and a.accumulate > 1:
        # DistributedSampler knows no groups: fill the last one by going round the epoch again.
        places = -(-a.n // (per_group * a.world)) * per_group
        order = sampler(a, 1, 0, epoch, False)
        ids = ids + [order[(j * a.world + rank) % a.n] for j in range(len(ids), places)]
    positions = range(rank, rank + len(ids) * a.world, a.world)
    if a.tail == 'mask':
        keep = sum(p < a.n for p in positions)
        return positions[:keep], ids[:keep]
    return positions, ids


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--n', type=int, required=True, help='samples')
    p.add_argument('--world', type=int, default=1)
    p.add_argument('--rank', default='0', help='a number, or "all" for the sum of all ranks')
    p.add_argument('--batch', type=int, required=True, help='of one rank')
    p.add_argument('--seed', type=int, default=0)
    p.add_argument('--first-epoch', type=int, default=0)
    p.add_argument('--epochs', type=int, default=1)
    p.add_argument('--tail', choices=('pad', 'drop', 'mask'), default='pad')
    p.add_argument('--accumulate', type=int, default=1)
    p.add_argument('--order', choices=('torch', 'feistel', 'sequential'), default='torch')
    p.add_argument('--own', action='store_true', help='do not use torch even if it is there')
    p.add_argument('--ids', action='store_true', help='print the ids in order, not the digest')
    a = p.parse_args()
    if min(a.n, a.world, a.batch, a.accumulate) < 1:
        p.error('n, world, batch and accumulate are at least 1')
    ranks = range(a.world) if a.rank == 'all' else [int(a.rank)]

    sampler, used = own_sampler, 'own MT19937'
    if a.order != 'torch':
        used = 'own ' + a.order
    if a.order != 'feistel' and not a.own:
        try:
            import torch
            sampler, used = torch_sampler, 'torch %s DistributedSampler' % torch.__version__
        except ImportError:
            pass
    print('torch_digest: used ' + used, file=sys.stderr)

    total = 0
    for epoch in range(a.first_epoch, a.first_epoch + a.epochs):
        for rank in ranks:
            positions, ids = lane(a, rank, epoch, sampler)
            if a.ids:
                print(*ids)
            total += digest_sum(epoch, positions, ids)
    if not a.ids:
        print('%016x' % (total & M64))


if __name__ == '__main__':
    main()
