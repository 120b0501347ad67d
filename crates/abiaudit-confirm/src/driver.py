"""Runs in the process under test: loads what it is told, in order, then asks the probes, and writes down what happens.

Each line of the record is a JSON object, written at once, so that a crash leaves all that came before it. Each question
is asked in a child process of its own, so that an answer that kills it does not keep the others from being given.
"""

import importlib
import json
import os
import select
import signal
import sys
import time

with open(sys.argv[1], "rb") as file:
    task = json.load(file)
record = os.open(task["record"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def say(event, **fields):
    os.write(record, json.dumps({"event": event, **fields}).encode() + b"\n")


def limit():
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if task["memory"] is not None:
        resource.setrlimit(resource.RLIMIT_AS, (task["memory"], task["memory"]))


def load(number, step):
    """Imports a module, or opens a probe."""
    say("begin", step=number)
    if step["kind"] == "probe":
        import ctypes

        ctypes.CDLL(step["path"], mode=ctypes.RTLD_GLOBAL if step["global"] else ctypes.RTLD_LOCAL)
    else:
        local = sys.getdlopenflags()
        if step["global"]:
            sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
        try:
            importlib.import_module(step["module"])
        finally:
            sys.setdlopenflags(local)
    say("loaded")


def in_child(question):
    """What comes of a question in a child process: an answer, a signal, an exit code, or nothing in time."""
    end, other = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        try:
            os.write(other, json.dumps(question()).encode())
            os._exit(0)
        except BaseException as error:
            os.write(other, json.dumps(f"{type(error).__name__}: {error}").encode())
            os._exit(0)
    os.close(other)
    answer = b""
    until = time.monotonic() + task["patience"]
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([end], [], [], left)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(end)
            return "hang"
        more = os.read(end, 65536)
        if not more:
            break
        answer += more
    os.close(end)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    if not answer:
        return {"exit": os.WEXITSTATUS(status)}
    return {"answer": json.loads(answer)}


class Probe:
    """The functions of a probe, or of a module that has them (probe.cpp)."""

    def __init__(self, name, path):
        import ctypes

        self.name = name
        self.library = ctypes.CDLL(path)
        for function in ("test", "run", "identity", "thrown", "catch", "stream"):
            getattr(self.library, "abiaudit_probe_" + function).restype = ctypes.c_char_p
        self.library.abiaudit_probe_address.restype = ctypes.c_void_p

    def __getattr__(self, function):
        return getattr(self.library, "abiaudit_probe_" + function)

    def names(self, kind):
        """Numbers and names of the tests, the identities or the exceptions."""
        function = getattr(self, kind)
        number = 0
        while (name := function(number)) is not None:
            yield number, name.decode()
            number += 1


def text(answer):
    return None if answer is None else answer.decode(errors="replace")


def ask(probes):
    for probe in probes:
        for number, name in probe.names("test"):
            say("test", at=probe.name, what=name, outcome=in_child(lambda: text(probe.run(number))))
    for probe in probes:
        for other in probes:
            if probe is not other:
                ask_across(probe, other)
    for position, probe in enumerate(probes):
        for other in probes[position + 1 :]:
            for number, name in probe.names("identity"):
                ours, theirs = probe.address(number), other.address(number)
                if ours and theirs:
                    say("identity", first=probe.name, second=other.name, what=name, shared=ours == theirs)


def ask_across(catcher, thrower):
    """Exceptions that `thrower` throws, and a stream that it prints to."""
    ways = {"from": thrower.name, "to": catcher.name}
    for number, name in catcher.names("thrown"):
        caught = in_child(lambda: text(catcher.catch(thrower.throw, number)))
        say("cross", **ways, what="throw " + name, outcome=caught, expected=name)
    printed = in_child(lambda: text(catcher.stream(thrower.print)))
    say("cross", **ways, what="ostream&", outcome=printed, expected=None)


def check(expression):
    """Evaluates an expression; dotted names in it may be modules that are imported."""
    names = {name.partition(".")[0]: sys.modules[name.partition(".")[0]] for name in sys.modules}
    value = eval(expression, names)
    return [bool(value), repr(value)[:500]]


def main():
    say("start")
    for number, step in enumerate(task["steps"]):
        try:
            load(number, step)
        except BaseException as error:
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            say("error", step=number, kind=type(error).__name__, message=str(error), absent=missing)
            return
    ask([Probe(name, path or sys.modules[name].__file__) for name, path in task["probes"]])
    for number, expression in enumerate(task["checks"]):
        say("check", number=number, outcome=in_child(lambda: check(expression)))
    say("end")


limit()
try:
    main()
except BaseException as error:
    # Neither the modules' fault nor the loader's.
    say("fault", message=f"{type(error).__name__}: {error}")
    raise
