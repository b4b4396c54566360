#!/usr/bin/python3
"""Some BMCs that speak IPMI over loopback, by pyghmi's own BMC.

It prints {"ports": [...]}, then answers each line of commands with the power
states, and prints {"hung": port} whenever a request hangs. It ends with its
input, or, whatever happens, after LIFE. Commands: {"user": .., "password": ..} for all BMCs; {"step": true};
{"set": port, "state": "on"}; {"refuse": port}; {"simple": port}, which knows no
soft shutdown; {"deaf": port}, whose guest does not listen; {"throttle": n};
{"hang": true}.
"""
import json
import os
import signal
import sys
import threading

import pyghmi.ipmi.bmc as bmc

LIFE = 600  # seconds: longer than the tests may take
signal.alarm(LIFE)  # nothing catches it, so this process does not outlive them
lock = threading.Lock()
faults = {"throttle": 0, "hang": False}


def say(what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Host(bmc.Bmc):
    def __init__(self, accounts):
        super().__init__(accounts, port=0, address="::ffff:127.0.0.1")
        self.port = self.serversocket.getsockname()[1]
        self.fresh()

    def fresh(self):
        self.state, self.goal, self.ticks = "off", None, 0
        self.refuses = self.simple = self.deaf = False

    def step(self):
        if self.goal is None:
            return
        self.ticks += 1
        if self.ticks >= 3:
            self.state, self.goal = self.goal, None

    def go(self, goal):
        if self.refuses:
            return 0xD4  # insufficient privilege
        if self.goal != goal:
            self.goal, self.ticks = goal, 0
        return 0

    def get_power_state(self):
        return self.state

    def power_on(self):
        return self.go("on")

    def power_off(self):
        return self.go("off")

    def power_shutdown(self):
        if self.simple:
            raise NotImplementedError
        if self.state == "off":
            return 0xD5  # not in this state
        return 0 if self.deaf else self.go("off")

    def handle_raw_request(self, request, session):
        with lock:
            if faults["hang"]:
                say({"hung": self.port})
                return
            if faults["throttle"] > 0:
                faults["throttle"] -= 1
                session.send_ipmi_response(code=0xC0)  # node busy
                return
            super().handle_raw_request(request, session)


def obey(c, accounts, hosts):
    by_port = {h.port: h for h in hosts}
    if "user" in c:
        accounts.clear()
        accounts[c["user"]] = c["password"]
    if c.get("step"):
        for h in hosts:
            h.step()
    if "set" in c:
        by_port[c["set"]].fresh()
        by_port[c["set"]].state = c["state"]
    for flag, name in (("refuse", "refuses"), ("simple", "simple"), ("deaf", "deaf")):
        if flag in c:
            setattr(by_port[c[flag]], name, True)
    for fault in faults:
        faults[fault] = c.get(fault, faults[fault])


def read(accounts, hosts):
    for line in sys.stdin:
        with lock:
            obey(json.loads(line), accounts, hosts)
            say({"states": {h.port: h.state for h in hosts}})
    os._exit(0)


def main():
    accounts = {}
    hosts = [Host(accounts) for _ in range(int(sys.argv[1]))]
    say({"ports": [h.port for h in hosts]})
    threading.Thread(target=read, args=(accounts, hosts), daemon=True).start()
    Host.listen(1)


main()
