"""Every state of the pool of threads: its LLVM text, run by clients (threads of the program that start jobs and stop the pool)
and by the workers that it starts, in every order. Violations: a task that runs twice, never, for a job that has ended or on
more threads than may be used; a sleeper that nobody wakes for a job; a race; workers that live when `stop` has said that
they have ended; a state from which the clients' calls cannot end.
"""
from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from itertools import combinations
from typing import Literal, NamedTuple

from tosaic.lowering.native.process import thread_pool as pool

from .llvm_steps import Program, Request, Stopped
from .weak_memory import Memory, Race, Rules, Views, Weaker, Write

POOL, VIEWS, ARGUMENTS, TASK = 0x10_0000, 0x20_0000, 0x40_0000, 0x700_0000
ATOMIC = tuple(POOL + member.offset for member in (
    pool.STATE, pool.UNCLAIMED, pool.LIMIT, pool.SLEEPERS, pool.BUSY, pool.STOPPED, pool.WAITING))
BUSY = POOL + pool.BUSY.offset
JOB_SHIFT = pool.JOB_SHIFT


class Job(NamedTuple):
    """A call of `pool.parallel` with a limit of threads."""
    limit: int
    tasks: int


Action = Job | Literal["stop"]


class Scene(NamedTuple):
    """The scene: the actions of each client; how many times a worker polls before it sleeps; whether the system may refuse to
    start a thread."""
    clients: tuple[tuple[Action, ...], ...]
    weak: bool = True
    refuses: bool = False
    spin: int = 0


class Thread(NamedTuple):
    """`done` actions of a client; -1 of a worker. `is_woken` is False while the thread sleeps in the kernel."""
    stopped: Stopped
    done: int = -1
    is_awake: bool = True
    is_joined: bool = False


class State(NamedTuple):
    threads: tuple[Thread, ...]
    views: Views
    memory: Memory


class Violation(Exception):
    """What is wrong in a state."""


class Found(NamedTuple):
    """What an exploration has found: the number of states, and what is wrong with the steps that lead there."""
    states: int
    wrong: str = ""
    steps: tuple[str, ...] = ()


def explore(text: str, scene: Scene, most: int = 10_000_000) -> Found:
    """Visit every state of a scene."""
    strong = set(range(len(ATOMIC)))
    while True:
        try:
            return explore_all(World(text, scene, strong), most)
        except Weaker:
            pass


def explore_all(world: World, most: int) -> Found:
    """Visit every state. A state that was visited is known by its hash, as other checkers have it."""
    numbers, todo, parents, edges, ends = dict[int, int](), deque[State](), array("q"), array("q"), list[int]()

    def number_of(state: State, parent: int) -> int:
        number = numbers.setdefault(hash(state), len(numbers))
        if number == len(parents):
            todo.append(state)
            parents.append(parent)
        return number

    try:
        position = number_of(world.first(), -1)
        while todo:
            state = todo.popleft()
            world.check(state)
            if world.is_end(state):
                ends.append(position)
            else:
                for _, following in world.moves(state):
                    edges.extend((number_of(following, position), position))
            position += 1
            if position > most:
                raise AssertionError(f"more than {most} states")
    except (Violation, Race) as wrong:
        return Found(len(numbers), str(wrong), steps_to(world, numbers, parents, position))
    stuck = cannot_end(len(numbers), edges, ends)
    if stuck is None:
        return Found(len(numbers))
    return Found(len(numbers), "the calls cannot end", steps_to(world, numbers, parents, stuck))


def steps_to(world: World, numbers: dict[int, int], parents: array[int], number: int) -> tuple[str, ...]:
    """The requests that lead from the first state to another one, each with the thread that has it."""
    path = [number]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    state, steps = world.first(), list[str]()
    for following in path[-2::-1]:
        thread, state = next((thread, after) for thread, after in world.moves(state) if numbers.get(hash(after)) == following)
        steps.append(f"thread {thread}: {described(state, thread)}")
    return tuple(steps)


def described(state: State, thread: int) -> str:
    frames, request = state.threads[thread].stopped.frames, state.threads[thread].stopped.request
    return f"{frames[-1].function}, {frames[-1].block}: {request}" if frames else request.kind


def cannot_end(count: int, edges: array[int], ends: list[int]) -> int | None:
    """The first state from which no end can be reached."""
    before: list[list[int]] = [[] for _ in range(count)]
    for i in range(0, len(edges), 2):
        before[edges[i]].append(edges[i + 1])
    can, todo = bytearray(count), list(ends)
    while todo:
        number = todo.pop()
        if not can[number]:
            can[number] = 1
            todo += before[number]
    return next((number for number in range(count) if not can[number]), None)


class World:
    """The transitions of a scene."""

    def __init__(self, text: str, scene: Scene, strong: set[int]) -> None:
        self.scene, self.program, self.rules = scene, Program(text), Rules(ATOMIC, scene.weak, strong)
        limits = sorted({action.limit for client in scene.clients for action in client if isinstance(action, Job)})
        self.views = {limit: VIEWS + 16 * i for i, limit in enumerate(limits)}
        self.fixed = {POOL + pool.SPIN.offset: scene.spin}
        for limit, at in self.views.items():
            self.fixed |= {at + pool.VIEW_POOL.offset: POOL, at + pool.VIEW_LIMIT.offset: limit}
        self.is_alone = len(scene.clients) == 1

    def first(self) -> State:
        state = State((), (), Memory(tuple((Write(0, 0),) for _ in ATOMIC)))
        for client in range(len(self.scene.clients)):
            threads = (*state.threads, Thread(Stopped(Request("return")), -1))
            state = State(threads, (*state.views, 0), state.memory)
            state = self.begun(state, client, 0)
        return self.shortened(state)

    # ---- clients -----------------------------------------------------------------------------------------------------
    def action(self, client: int, done: int) -> Action | None:
        actions = self.scene.clients[client]
        return actions[done] if done < len(actions) else None

    def argument(self, client: int, done: int) -> int:
        """The argument of a job's tasks: a counter of runs for each."""
        return ARGUMENTS + 0x10000 * client + 0x400 * done

    def begun(self, state: State, client: int, done: int) -> State:
        """The state in which a client has called the next of its functions."""
        action, memory = self.action(client, done), state.memory
        if action is None:
            stopped = Stopped(Request("end"))
        elif action == "stop":
            stopped = self.program.call(pool.STOP, POOL)
        else:
            cells = {self.argument(client, done) + 8 * i: 0 for i in range(action.tasks)}
            memory = memory._replace(plain=tuple(sorted({**dict(memory.plain), **cells}.items())))
            stopped = self.program.call(pool.RUN, self.views[action.limit], TASK, self.argument(client, done), action.tasks)
        threads = (*state.threads[:client], Thread(stopped, done), *state.threads[client + 1:])
        return self.settled(State(threads, state.views, memory), client)

    def ended(self, state: State, client: int) -> State:
        """The state in which a client's function has returned: what it promises holds."""
        thread = state.threads[client]
        action, memory, views = self.action(client, thread.done), state.memory, state.views
        if action == "stop":
            if not thread.stopped.request.operands[0] and not all(t.is_joined for t in state.threads if t.done < 0):
                raise Violation("stop has returned, and a worker has not ended")
        else:
            assert action is not None
            cells = range(self.argument(client, thread.done), self.argument(client, thread.done) + 8 * action.tasks)
            for place in cells[::8]:
                count, memory, views = self.rules.plain_read(memory, views, client, place)
                if count != 1:
                    raise Violation(f"a task has run {count} times when its job ends")
            memory = self.rules.forget(memory, cells)
        return self.begun(State(state.threads, views, memory), client, thread.done + 1)

    # ---- steps -------------------------------------------------------------------------------------------------------
    def is_end(self, state: State) -> bool:
        return all(t.stopped.request.kind == "end" for t in state.threads if t.done >= 0)

    def moves(self, state: State) -> Iterator[tuple[int, State]]:
        """The states that follow, each with the thread that goes on."""
        for number, thread in enumerate(state.threads):
            if thread.is_awake and thread.stopped.request.kind not in ("end", "return"):
                for following in self.step(state, number):
                    yield number, self.shortened(following)

    def step(self, state: State, number: int) -> Iterator[State]:
        """Every outcome of a thread's request."""
        request = state.threads[number].stopped.request
        memory, views, rules = state.memory, state.views, self.rules
        match request.kind:
            case "load":
                for value, after, seen in rules.reads(memory, views, number, request.operands[0], request.order):
                    yield self.answered(State(state.threads, seen, after), number, value)
            case "store":
                for after, seen in rules.stores(memory, views, number, *request.operands, request.order):
                    yield self.answered(State(state.threads, seen, after), number)
            case "update":
                place, operand, mask = request.operands
                def change(old: int) -> int:
                    return updated(request.operation, old, operand, mask)

                for value, _, after, seen in rules.updates(memory, views, number, place, change, request.order):
                    yield self.answered(State(state.threads, seen, after), number, value)
            case "exchange":
                place, expected, desired = request.operands
                for value, is_written, after, seen in rules.updates(
                        memory, views, number, place, lambda old: desired if old == expected else None, request.order,
                        request.operation):
                    yield self.answered(State(state.threads, seen, after), number, value, int(is_written))
            case "syscall":
                yield from self.futex(state, number, request)
            case "pthread_create":
                yield self.created(state, number, request)
                if self.scene.refuses:
                    yield self.answered(state, number, 11)
            case "pthread_join":
                yield from self.joined(state, number, request.operands[0] - 1)
            case _:
                raise AssertionError(request)

    def futex(self, state: State, number: int, request: Request) -> Iterator[State]:
        place, operation, value = request.operands[1:4]
        if operation == pool.WAIT:
            found = self.rules.compared(state.memory, state.views, number, place)
            if value in found:
                yield changed(state, number, state.threads[number]._replace(is_awake=False))
            if found - {value}:
                yield self.answered(state, number, -1)
            return
        sleepers = [i for i, t in enumerate(state.threads) if not t.is_awake and t.stopped.request.operands[1] == place]
        memory = self.rules.woken(state.memory, state.views, number)
        for chosen in combinations(sleepers, min(value, len(sleepers))):
            after = state._replace(memory=memory)
            for each in chosen:
                after = self.answered(changed(after, each, after.threads[each]._replace(is_awake=True)), each)
            yield self.answered(after, number, len(chosen))

    def created(self, state: State, number: int, request: Request) -> State:
        """A thread that has been started, but has not begun."""
        at, _, function, argument = request.operands
        assert function == self.program.symbols["worker"]
        worker = len(state.threads)
        memory, views = self.rules.plain_write(state.memory, state.views, number, at, worker + 1)
        threads = (*state.threads, Thread(self.program.call("worker", argument)))
        after = self.settled(State(threads, (*views, views[number]), memory), worker)
        return self.answered(after, number)

    def joined(self, state: State, number: int, worker: int) -> Iterator[State]:
        if worker < 0 or state.threads[worker].is_joined:
            raise Violation("stop waits for a thread that is not there")
        thread = state.threads[worker]
        if thread.stopped.request.kind == "return":
            views = (*state.views[:number], state.views[number] | state.views[worker], *state.views[number + 1:])
            after = changed(state._replace(views=views), worker, thread._replace(is_joined=True))
            yield self.answered(after, number)

    def answered(self, state: State, number: int, value: int = 0, is_written: int | None = None) -> State:
        thread = state.threads[number]
        stopped = self.program.answer(thread.stopped, value, is_written)
        return self.settled(changed(state, number, thread._replace(stopped=stopped)), number)

    def settled(self, state: State, number: int) -> State:
        """Run a thread up to a request that other threads' order matters for."""
        while True:
            threads, views, memory = state
            request = threads[number].stopped.request
            kind, operands = request.kind, request.operands
            if kind == "return" and threads[number].done >= 0:
                return self.ended(state, number)
            if kind == "task":
                memory, views = self.task(state, number, operands)
                value = 0
            elif kind == "load" and not request.order:
                if operands[0] in self.fixed:
                    value = self.fixed[operands[0]]
                else:
                    value, memory, views = self.rules.plain_read(memory, views, number, operands[0])
            elif kind == "store" and not request.order:
                memory, views = self.rules.plain_write(memory, views, number, *operands)
                value = 0
            elif kind == "llvm.x86.sse.stmxcsr":
                memory, views = self.rules.plain_write(memory, views, number, operands[0], self.mode(state, number))
                value = 0
            elif kind == "llvm.x86.sse.ldmxcsr":
                value, memory, views = self.rules.plain_read(memory, views, number, operands[0])
                if value != dict(memory.plain)[POOL + pool.ARGUMENT.offset]:
                    raise Violation("a worker takes over another caller's mode of floats")
            elif kind == "pthread_sigmask":
                value = 0
            elif self.is_alone and operands and operands[0] == BUSY:
                state, = self.step(state, number)
                return state
            else:
                return state
            thread = threads[number]
            thread = thread._replace(stopped=self.program.answer(thread.stopped, value))
            state = State((*threads[:number], thread, *threads[number + 1:]), views, memory)

    def mode(self, state: State, client: int) -> int:
        """A client's mode of floats: another one in each job."""
        return self.argument(client, state.threads[client].done)

    def task(self, state: State, number: int, operands: tuple[int, ...]) -> tuple[Memory, Views]:
        function, argument, task = operands
        place = argument + 8 * task
        if function != TASK or place not in dict(state.memory.plain):
            raise Violation("a task runs of a job that has ended")
        count, memory, views = self.rules.plain_read(state.memory, state.views, number, place)
        if count:
            raise Violation("a task runs twice")
        return self.rules.plain_write(memory, views, number, place, 1)

    # ---- states ------------------------------------------------------------------------------------------------------
    def check(self, state: State) -> None:
        """Nobody sleeps through a job, nor works in one that has threads enough."""
        for client, thread in enumerate(state.threads):
            if thread.done >= 0 and thread.stopped.runs("work"):
                action = self.action(client, thread.done)
                assert isinstance(action, Job)
                workers = [t for t in state.threads if t.done < 0]
                if sum(t.stopped.runs("work") for t in workers) > action.limit - 1:
                    raise Violation("more threads work than may be used")
                job = state.memory.writes[0][-1].value >> JOB_SHIFT
                asleep = [t for t in workers if not t.is_awake and t.stopped.request.operands[3] >> JOB_SHIFT != job]
                if len(asleep) > max(0, len(workers) - (action.limit - 1)):
                    raise Violation("a worker sleeps through a job")

    def shortened(self, state: State) -> State:
        """Without differences that no thread can see any more."""
        if not self.scene.weak:
            return state
        views = list(state.views)
        for i, thread in enumerate(state.threads):
            stopped = thread.stopped if thread.is_awake else self.program.answer(thread.stopped, 0)
            if stopped.request.order == "seq_cst":
                views[i] = self.rules.at_least_ordered(state.memory, views[i], stopped.request.operands[0])
        state = state._replace(views=tuple(views))
        alive = [i for i, t in enumerate(state.threads) if not t.is_joined and t.stopped.request.kind != "end"]
        memory, views = self.rules.shortened(state.memory, state.views, alive or [0])
        gone = [i for i, t in enumerate(state.threads) if i not in alive and views[i]]
        for i in gone:
            views = (*views[:i], 0, *views[i + 1:])
        return State(state.threads, views, memory)


def changed(state: State, number: int, thread: Thread) -> State:
    return State((*state.threads[:number], thread, *state.threads[number + 1:]), state.views, state.memory)


def updated(operation: str, old: int, operand: int, mask: int) -> int:
    match operation:
        case "add":
            return old + operand & mask
        case "sub":
            return old - operand & mask
        case "and":
            return old & operand
        case "xchg":
            return operand
    raise AssertionError(operation)
