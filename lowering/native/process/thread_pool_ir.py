"""The LLVM IR of the process's pool of threads, and how its memory is laid out.

One job runs at a time. Its state is one word: how many workers are inside (8 bits), whether the job is open, its number. A
worker that comes too late finds the job closed, and the caller never waits for a thread that has not begun: parts are claimed
one by one, by whoever is there, each thread first those that it had in the job before. Idle workers look at the word for a
while, and then sleep on it.
"""
from __future__ import annotations

STATE, UNCLAIMED, TASK, ARGUMENT, PARTS, LIMIT, MODE = 0, 64, 72, 80, 88, 96, 104
SLEEPERS, BUSY, STARTED, REFUSED, STOP, SPIN, WAITING, SLOTS, SLOT = 128, 192, 196, 200, 204, 208, 212, 256, 32
"""Where things lie in the memory of a pool, in bytes: the word, the job (with the caller's mode of floats, which its workers
take over), threads. A worker's slot has the pool, its number, its thread, and the job before the first that it may join."""

WAIT, WAKE = 128, 129
"""Futex operations, for one process."""

JOIN_SPIN = 20_000
"""Pauses that a caller makes before it sleeps until the last worker has left."""

TEXT = f"""
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(ptr, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i64 @syscall(i64, ...)
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.fshr.i64(i64, i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
DECLARATIONS

; Run parts that nobody has claimed, from part %start on, until none is left.
define internal void @work(ptr %pool, i64 %start) #0 {{
entry:
  %unclaimed = getelementptr i8, ptr %pool, i64 {UNCLAIMED}
  %task.at = getelementptr i8, ptr %pool, i64 {TASK}
  %argument.at = getelementptr i8, ptr %pool, i64 {ARGUMENT}
  %task = load ptr, ptr %task.at
  %argument = load ptr, ptr %argument.at
  br label %look
look:
  %left = load atomic i64, ptr %unclaimed acquire, align 8
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %claim
claim:
  %turned = call i64 @llvm.fshr.i64(i64 %left, i64 %left, i64 %start)
  %first = call i64 @llvm.cttz.i64(i64 %turned, i1 true)
  %beyond = add i64 %first, %start
  %part = and i64 %beyond, 63
  %bit = shl i64 1, %part
  %others = xor i64 %bit, -1
  %before = atomicrmw and ptr %unclaimed, i64 %others acq_rel
  %mine = and i64 %before, %bit
  %lost = icmp eq i64 %mine, 0
  br i1 %lost, label %look, label %run
run:
  call void %task(ptr %argument, i64 %part)
  br label %look
done:
  ret void
}}

define internal ptr @worker(ptr %slot) #0 {{
entry:
  %pool = load ptr, ptr %slot
  %number.at = getelementptr i8, ptr %slot, i64 8
  %number = load i64, ptr %number.at
  %seen.at = getelementptr i8, ptr %slot, i64 24
  %seen = load i32, ptr %seen.at
  %spin.at = getelementptr i8, ptr %pool, i64 {SPIN}
  %stop.at = getelementptr i8, ptr %pool, i64 {STOP}
  %sleepers = getelementptr i8, ptr %pool, i64 {SLEEPERS}
  %limit.at = getelementptr i8, ptr %pool, i64 {LIMIT}
  %parts.at = getelementptr i8, ptr %pool, i64 {PARTS}
  %waiting.at = getelementptr i8, ptr %pool, i64 {WAITING}
  %spin = load i32, ptr %spin.at
  br label %idle
idle:
  %last = phi i32 [%seen, %entry], [%job, %look], [%job, %enough], [%job, %inside], [%job, %wake]
  br label %watch
watch:
  %i = phi i32 [0, %idle], [%i.next, %pause]
  %state = load atomic i32, ptr %pool acquire, align 4
  %current = lshr i32 %state, 9
  %same = icmp eq i32 %current, %last
  br i1 %same, label %pause, label %new
pause:
  PAUSE
  %i.next = add i32 %i, 1
  %again = icmp slt i32 %i.next, %spin
  br i1 %again, label %watch, label %sleep
sleep:
  %more = atomicrmw add ptr %sleepers, i32 1 seq_cst
  br label %asleep
asleep:
  %state.now = load atomic i32, ptr %pool seq_cst, align 4
  %current.now = lshr i32 %state.now, 9
  %same.now = icmp eq i32 %current.now, %last
  br i1 %same.now, label %wait, label %awake
wait:
  %waited = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %pool, i32 {WAIT}, i32 %state.now, ptr null)
  br label %asleep
awake:
  %fewer = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %new
new:
  %found = phi i32 [%state, %watch], [%state.now, %awake]
  %stop = load atomic i32, ptr %stop.at acquire, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %end, label %look
look:
  %word = phi i32 [%found, %new], [%other, %enter]
  %job = lshr i32 %word, 9
  %open = and i32 %word, 256
  %closed = icmp eq i32 %open, 0
  br i1 %closed, label %idle, label %enough
enough:
  %active = and i32 %word, 255
  %active.all = zext i32 %active to i64
  %limit = load atomic i64, ptr %limit.at monotonic, align 8
  %room = sub i64 %limit, 1
  %full = icmp sge i64 %active.all, %room
  br i1 %full, label %idle, label %enter
enter:
  %with.me = add i32 %word, 1
  %pair = cmpxchg ptr %pool, i32 %word, i32 %with.me acq_rel acquire
  %other = extractvalue {{ i32, i1 }} %pair, 0
  %entered = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %entered, label %inside, label %look
inside:
  %parts = load i64, ptr %parts.at
  %most = load i64, ptr %limit.at
  %product = mul i64 %parts, %number
  %begin = udiv i64 %product, %most
  %start = and i64 %begin, 63
  %mode.at = getelementptr i8, ptr %pool, i64 {MODE}
  TAKE_MODE
  call void @work(ptr %pool, i64 %start)
  %before = atomicrmw sub ptr %pool, i32 1 seq_cst
  %inside.before = and i32 %before, 255
  %is.last = icmp eq i32 %inside.before, 1
  %waiting = load atomic i32, ptr %waiting.at seq_cst, align 4
  %is.waited = icmp ne i32 %waiting, 0
  %call = and i1 %is.last, %is.waited
  br i1 %call, label %wake, label %idle
wake:
  %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %pool, i32 {WAKE}, i32 2147483647)
  br label %idle
end:
  ret ptr null
}}

; Start workers until there are %wanted; they take no signals, which are for the threads of the program.
define internal void @start(ptr %pool, i32 %wanted) #0 {{
entry:
  %all = alloca [128 x i8], align 8
  %old = alloca [128 x i8], align 8
  %started.at = getelementptr i8, ptr %pool, i64 {STARTED}
  %refused.at = getelementptr i8, ptr %pool, i64 {REFUSED}
  %refused = load i32, ptr %refused.at
  %never = icmp ne i32 %refused, 0
  br i1 %never, label %end, label %block
block:
  call void @llvm.memset.p0.i64(ptr %all, i8 -1, i64 128, i1 false)
  %blocked = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  br label %next
next:
  %i = load i32, ptr %started.at
  %fewer = icmp slt i32 %i, %wanted
  br i1 %fewer, label %create, label %unblock
create:
  %index = zext i32 %i to i64
  %number = add i64 %index, 1
  %distance = mul i64 %index, {SLOT}
  %first = getelementptr i8, ptr %pool, i64 {SLOTS}
  %slot = getelementptr i8, ptr %first, i64 %distance
  %number.at = getelementptr i8, ptr %slot, i64 8
  %thread.at = getelementptr i8, ptr %slot, i64 16
  %seen.at = getelementptr i8, ptr %slot, i64 24
  %state = load atomic i32, ptr %pool monotonic, align 4
  %seen = lshr i32 %state, 9
  store ptr %pool, ptr %slot
  store i64 %number, ptr %number.at
  store i32 %seen, ptr %seen.at
  %failed = call i32 @pthread_create(ptr %thread.at, ptr null, ptr @worker, ptr %slot)
  %is.there = icmp eq i32 %failed, 0
  br i1 %is.there, label %counted, label %refuse
counted:
  %more = add i32 %i, 1
  store i32 %more, ptr %started.at
  br label %next
refuse:
  store i32 1, ptr %refused.at
  br label %unblock
unblock:
  %restored = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  br label %end
end:
  ret void
}}

; Call task(argument, part) for each part below %parts. %view has the pool and how many threads may be used.
define void @pool.parallel(ptr %view, ptr %task, ptr %argument, i64 %parts) #0 {{
entry:
  %pool = load ptr, ptr %view
  %limit.of = getelementptr i64, ptr %view, i64 1
  %limit = load i64, ptr %limit.of
  %few = icmp slt i64 %limit, 2
  %one = icmp slt i64 %parts, 2
  %many = icmp sgt i64 %parts, 64
  %alone = or i1 %few, %one
  %serially = or i1 %alone, %many
  br i1 %serially, label %serial, label %try
try:
  %busy = getelementptr i8, ptr %pool, i64 {BUSY}
  %pair = cmpxchg ptr %busy, i32 0, i32 1 acquire monotonic
  %free = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %free, label %threads, label %serial
threads:
  %started.at = getelementptr i8, ptr %pool, i64 {STARTED}
  %started = load i32, ptr %started.at
  %limit32 = trunc i64 %limit to i32
  %wanted = sub i32 %limit32, 1
  %lacking = icmp slt i32 %started, %wanted
  br i1 %lacking, label %begin, label %publish
begin:
  call void @start(ptr %pool, i32 %wanted)
  br label %publish
publish:
  %unclaimed = getelementptr i8, ptr %pool, i64 {UNCLAIMED}
  %task.at = getelementptr i8, ptr %pool, i64 {TASK}
  %argument.at = getelementptr i8, ptr %pool, i64 {ARGUMENT}
  %parts.at = getelementptr i8, ptr %pool, i64 {PARTS}
  %limit.at = getelementptr i8, ptr %pool, i64 {LIMIT}
  %waiting.at = getelementptr i8, ptr %pool, i64 {WAITING}
  store ptr %task, ptr %task.at
  store ptr %argument, ptr %argument.at
  store i64 %parts, ptr %parts.at
  %mode.at = getelementptr i8, ptr %pool, i64 {MODE}
  NOTE_MODE
  store atomic i64 %limit, ptr %limit.at monotonic, align 8
  %gone = sub i64 64, %parts
  %every = lshr i64 -1, %gone
  store atomic i64 %every, ptr %unclaimed release, align 8
  %old = load atomic i32, ptr %pool monotonic, align 4
  %old.job = and i32 %old, -512
  %new = add i32 %old.job, 768
  %was = atomicrmw xchg ptr %pool, i32 %new seq_cst
  %sleepers.at = getelementptr i8, ptr %pool, i64 {SLEEPERS}
  %sleepers = load atomic i32, ptr %sleepers.at seq_cst, align 4
  %asleep = icmp sgt i32 %sleepers, 0
  br i1 %asleep, label %wake, label %own
wake:
  %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %pool, i32 {WAKE}, i32 %wanted)
  br label %own
own:
  call void @work(ptr %pool, i64 0)
  %open = atomicrmw and ptr %pool, i32 -257 seq_cst
  br label %join
join:
  %i = phi i32 [0, %own], [%i.next, %pause]
  %state = load atomic i32, ptr %pool acquire, align 4
  %inside = and i32 %state, 255
  %empty = icmp eq i32 %inside, 0
  br i1 %empty, label %leave, label %pause
pause:
  PAUSE
  %i.next = add i32 %i, 1
  %again = icmp slt i32 %i.next, {JOIN_SPIN}
  br i1 %again, label %join, label %sleep
sleep:
  store atomic i32 1, ptr %waiting.at seq_cst, align 4
  br label %asleep.too
asleep.too:
  %state.now = load atomic i32, ptr %pool seq_cst, align 4
  %inside.now = and i32 %state.now, 255
  %empty.now = icmp eq i32 %inside.now, 0
  br i1 %empty.now, label %awake, label %wait
wait:
  %waited = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %pool, i32 {WAIT}, i32 %state.now, ptr null)
  br label %asleep.too
awake:
  store atomic i32 0, ptr %waiting.at seq_cst, align 4
  br label %leave
leave:
  store atomic i32 0, ptr %busy release, align 4
  ret void
serial:
  %some = icmp sgt i64 %parts, 0
  br i1 %some, label %next, label %done
next:
  %part = phi i64 [0, %serial], [%following, %next]
  call void %task(ptr %argument, i64 %part)
  %following = add i64 %part, 1
  %more = icmp slt i64 %following, %parts
  br i1 %more, label %next, label %done
done:
  ret void
}}

; End the workers, and let every later job run serially. Does nothing while a job runs: 1 then, else 0.
define i32 @pool.stop(ptr %pool) #0 {{
entry:
  %busy = getelementptr i8, ptr %pool, i64 {BUSY}
  %pair = cmpxchg ptr %busy, i32 0, i32 1 acquire monotonic
  %free = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %free, label %stop, label %running
stop:
  %stop.at = getelementptr i8, ptr %pool, i64 {STOP}
  store atomic i32 1, ptr %stop.at seq_cst, align 4
  %state = atomicrmw add ptr %pool, i32 512 seq_cst
  %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %pool, i32 {WAKE}, i32 2147483647)
  %started.at = getelementptr i8, ptr %pool, i64 {STARTED}
  %started = load i32, ptr %started.at
  %count = zext i32 %started to i64
  br label %next
next:
  %i = phi i64 [0, %stop], [%following, %join]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %join, label %done
join:
  %distance = mul i64 %i, {SLOT}
  %first = getelementptr i8, ptr %pool, i64 {SLOTS}
  %slot = getelementptr i8, ptr %first, i64 %distance
  %thread.at = getelementptr i8, ptr %slot, i64 16
  %thread = load ptr, ptr %thread.at
  %joined = call i32 @pthread_join(ptr %thread, ptr null)
  %following = add i64 %i, 1
  br label %next
running:
  ret i32 1
done:
  ret i32 0
}}

attributes #0 = {{ nounwind "no-builtins" }}
"""
