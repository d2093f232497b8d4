"""Makes two hosts, which are network namespaces, and a link that delays, loses, doubles, reorders
or cuts their packets. Needs root and /dev/net/tun.
"""
import collections
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time

ADDRESSES = ("10.203.78.1", "10.203.78.2")
CLONE_NEWNET, TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x40000000, 0x400454CA, 1, 0x1000
PACKET_MAX = 65536


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


def open_card(namespace, name):
    """Returns a card of the namespace; packets written to it arrive there."""
    opened = []

    def enter_and_open():  # A namespace is a property of the thread.
        with open(f"/run/netns/{namespace}", "rb") as where:
            if ctypes.CDLL(None, use_errno=True).setns(where.fileno(), CLONE_NEWNET) != 0:
                return
        card = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(card, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
        opened.append(card)
    thread = threading.Thread(target=enter_and_open)
    thread.start()
    thread.join()
    if not opened:
        raise OSError(f"no card {name} in {namespace}")
    return opened[0]


class BadLink:
    """Carries all packets between two hosts. Direction 0 is from the first host to the second."""

    def __init__(self, seed=1):
        self.dice = random.Random(seed)
        self.counts = collections.Counter()
        self.names = [f"troupe-{os.getpid()}-{host}" for host in "ab"]
        self.prefixes = [("ip", "netns", "exec", name) for name in self.names]
        self.delay_s = self.jitter_s = self.loss = self.repetition = 0.0
        self.bytes_per_s = 1e12
        self.cut = set()  # Directions.
        self.over = False
        self.cards = []
        self.thread = threading.Thread(target=self.carry, daemon=True)
        try:
            self.make_hosts()
        except BaseException:
            self.remove_hosts()
            raise
        self.thread.start()

    def make_hosts(self):
        for host, name in enumerate(self.names):
            ip("netns", "add", name)
            self.cards.append(open_card(name, f"link{host}"))
            ip("-n", name, "addr", "add", ADDRESSES[host], "peer", ADDRESSES[1 - host], "dev",
               f"link{host}")
            ip("-n", name, "link", "set", f"link{host}", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def remove_hosts(self):
        for card in self.cards:
            os.close(card)
        for name in self.names:
            if os.path.exists(f"/run/netns/{name}"):
                ip("netns", "del", name)

    def close(self):
        self.over = True
        self.thread.join()
        self.remove_hosts()

    def carry(self):
        on_the_way, number, free_at, last_due = [], 0, [0.0, 0.0], [0.0, 0.0]
        while not self.over:
            now = time.monotonic()
            wait = min(0.05, max(0.0, on_the_way[0][0] - now)) if on_the_way else 0.05
            for card in select.select(self.cards, [], [], wait)[0]:
                direction, packet = self.cards.index(card), os.read(card, PACKET_MAX)
                if direction in self.cut:
                    self.counts["cut"] += 1
                    continue
                if self.dice.random() < self.loss:
                    self.counts["lost"] += 1
                    continue
                copies = 2 if self.dice.random() < self.repetition else 1
                self.counts["doubled"] += copies - 1
                for _ in range(copies):
                    free_at[direction] = (max(free_at[direction], time.monotonic())
                                          + len(packet) / self.bytes_per_s)
                    due = free_at[direction] + self.delay_s + self.dice.random() * self.jitter_s
                    self.counts["delayed"] += self.delay_s > 0
                    self.counts["overtaken"] += due < last_due[direction]
                    last_due[direction] = max(due, last_due[direction])
                    number += 1
                    heapq.heappush(on_the_way, (due, number, direction, packet))
            now = time.monotonic()
            while on_the_way and on_the_way[0][0] <= now:
                _, _, direction, packet = heapq.heappop(on_the_way)
                try:
                    os.write(self.cards[1 - direction], packet)
                except OSError:  # The other side's queue is full: the packet is lost.
                    self.counts["lost"] += 1
