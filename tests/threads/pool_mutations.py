"""Faults in the protocol of the pool of threads, each as a change of its LLVM text."""
from __future__ import annotations

import re
from typing import NamedTuple


class Mutation(NamedTuple):
    """Within a function of the text: regular expressions that match once each, and their replacements."""
    function: str
    changes: tuple[tuple[str, str], ...]

    def __call__(self, text: str) -> str:
        found = re.search(rf"^define [^@]*@{re.escape(self.function)}\(.*?^\}}", text, re.M | re.S)
        assert found is not None, self.function
        body = found[0]
        for pattern, replacement in self.changes:
            body, count = re.subn(pattern, replacement, body, flags=re.M | re.S)
            assert count == 1, (count, pattern)
        return text.replace(found[0], body)


def mutation(function: str, *changes: tuple[str, str]) -> Mutation:
    return Mutation(function, changes)


def order(function: str, access: str, before: str, after: str) -> Mutation:
    """An atomic access asks for another order."""
    return mutation(function, (f"({access}) {before}", rf"\1 {after}"))


WORK, WORKER, START, PARALLEL, STOP = "work", "worker", "start", "pool.parallel", "pool.stop"
EXCHANGE = r"cmpxchg ptr %t\d+, i32 %t\d+, i32 %t\d+"
LOST = ((r"label %(inside\d+), label %new2$", r"label %\1, label %look2"),
        (r"^new2:\n( %t\d+ = phi i32 \[%t\d+, %watch1\], \[%t\d+, %awake1\]), \[%t\d+, %further\d+\]$", r"new2:\n\1"))

FAULTS = {
    "a lost exchange does not ask whether the pool has stopped": mutation(WORKER, *LOST),
    "a new word does not lead to the question": mutation(WORKER, (r"label %end2, label %look2", "label %look2, label %look2")),
    "a worker sleeps without a last look": mutation(WORKER, (r"load atomic i32, ptr (%t\d+) seq_cst, align 4\n( %t\d+ = lshr)",
                                                             r"load atomic i32, ptr \1 monotonic, align 4\n\2")),
    "sleepers are not counted": mutation(WORKER, (r"(atomicrmw add ptr %t\d+, i32) 1", r"\1 0"),
                                         (r"(atomicrmw sub ptr %t17, i32) 1", r"\1 0")),
    "there is always room": mutation(WORKER, (r"label %(further\d+), label %idle1\nfurther\d+:\n( %t\d+ = add)",
                                              r"label %\1, label %\1\n\1:\n\2")),
    "the last worker wakes nobody": mutation(WORKER, ("i32 129, i32 2147483647", "i32 129, i32 0")),
    "the last worker asks who waits before it leaves": mutation(WORKER, (
        r"( %t\d+ = atomicrmw sub ptr %t3, i32 1 seq_cst\n)(.*?\n)( %t\d+ = getelementptr i8, ptr %t3, i64 212\n %t\d+ = load "
        r"atomic i32, ptr %t\d+ seq_cst, align 4\n)", r"\3\1\2")),
    "a worker stays in the count": mutation(WORKER, (r"(atomicrmw sub ptr %t3, i32) 1", r"\1 0")),
    "a task is run that another thread has claimed": mutation(WORK, (
        r"label %(further\d+), label %look1\nfurther\d+:\n( call void %t)", r"label %\1, label %\1\n\1:\n\2")),
    "a claimed task is not run": mutation(WORK, (r"label %(further\d+), label %look1\nfurther\d+:\n( call void %t)",
                                                 r"label %look1, label %look1\n\1:\n\2")),
    "a job wakes nobody": mutation(PARALLEL, (r"i32 129, i32 %t\d+", "i32 129, i32 0")),
    "a job wakes one worker": mutation(PARALLEL, (r"i32 129, i32 %t\d+", "i32 129, i32 1")),
    "a job does not ask who sleeps": mutation(PARALLEL, (r"label %wake1, label %own1", "label %own1, label %own1")),
    "a job is not closed": mutation(PARALLEL, (r"i32 -257", "i32 -1")),
    "a job is open before its argument is there": mutation(PARALLEL, (
        r"( store ptr %argument, ptr %t\d+\n)(.*? = atomicrmw xchg [^\n]*\n)", r"\2\1")),
    "a caller does not wait for workers": mutation(PARALLEL, ("label %leave2, label %pause2", "label %leave2, label %leave2")),
    "a caller does not say that it waits": mutation(PARALLEL, (r"store atomic i32 1", "store atomic i32 0")),
    "a job does not ask whether another one runs": mutation(PARALLEL, (
        r"label %(further\d+), label %serial1\nfurther\d+:\n( %t\d+ = trunc)", r"label %\1, label %\1\n\1:\n\2")),
    "a thread is counted that could not be started": mutation(START, (r"label %(further\d+), label %refuse1",
                                                                      r"label %\1, label %\1")),
    "stop wakes nobody": mutation(STOP, ("i32 129, i32 2147483647", "i32 129, i32 0")),
    "stop wakes one worker": mutation(STOP, ("i32 129, i32 2147483647", "i32 129, i32 1")),
    "stop leaves the word as it was": mutation(STOP, ("i32 512", "i32 0")),
    "stop changes the word before it is said": mutation(STOP, (
        r"( store atomic i32 1, [^\n]*\n)( %t\d+ = atomicrmw add [^\n]*\n)", r"\2\1")),
    "stop does not say so": mutation(STOP, (r"store atomic i32 1", "store atomic i32 0")),
    "stop does not ask whether a job runs": mutation(STOP, (r"label %(further\d+), label %running1", r"label %\1, label %\1")),
}

ORDERS = {
    "the look at the word": mutation(WORKER, (r"(watch1:.*?load atomic i32, ptr %t3) acquire", r"\1 monotonic")),
    "the count of sleepers, acq_rel": order(WORKER, r"atomicrmw add ptr %t\d+, i32 1", "seq_cst", "acq_rel"),
    "the last look, acquire": mutation(WORKER, (r"(asleep1:\n[^\n]*) seq_cst", r"\1 acquire")),
    "the entrance, lost": order(WORKER, EXCHANGE, "acq_rel acquire", "acq_rel monotonic"),
    "the exit, acq_rel": order(WORKER, r"atomicrmw sub ptr %t3, i32 1", "seq_cst", "acq_rel"),
    "the exit, acquire": order(WORKER, r"atomicrmw sub ptr %t3, i32 1", "seq_cst", "acquire"),
    "the question who waits": mutation(WORKER, (r"(inside2:.*?load atomic i32, ptr %t\d+) seq_cst", r"\1 acquire")),
    "the entrance to the pool": order(PARALLEL, r"cmpxchg ptr %t\d+, i32 0, i32 1", "acquire monotonic", "monotonic monotonic"),
    "the job, acq_rel": order(PARALLEL, r"atomicrmw xchg ptr %t\d+, i32 %t\d+", "seq_cst", "acq_rel"),
    "the job, acquire": order(PARALLEL, r"atomicrmw xchg ptr %t\d+, i32 %t\d+", "seq_cst", "acquire"),
    "the question who sleeps": mutation(PARALLEL, (r"(xchg.*?load atomic i32, ptr %t\d+) seq_cst", r"\1 acquire")),
    "the look whether workers are inside": mutation(PARALLEL, (r"(join2:.*?load atomic i32, ptr %t\d+) acquire",
                                                               r"\1 monotonic")),
    "the caller waits": mutation(PARALLEL, (r"(store atomic i32 1, ptr %t\d+) seq_cst", r"\1 release")),
    "the caller's last look, acquire": mutation(PARALLEL, (r"(asleep2:\n[^\n]*) seq_cst", r"\1 acquire")),
    "the caller's last look, monotonic": mutation(PARALLEL, (r"(asleep2:\n[^\n]*) seq_cst", r"\1 monotonic")),
    "the exit from the pool": mutation(PARALLEL, (r"(store atomic i32 0, ptr %t\d+) release", r"\1 monotonic")),
    "stop changes the word": order(STOP, r"i32 512", "seq_cst", "monotonic"),
}
