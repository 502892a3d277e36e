// The fiber scheduler behind emulation.h and the checks of collectives, barriers and shared arrays.
// One OS thread runs one launch. A failure unwinds by never resuming a fiber: kernels own nothing.
#include "kernels/cuda/emulation.h"

#include <map>
#include <memory>
#include <tuple>
#include <utility>

// ucontext is portable and every sanitizer knows it, but two system calls make a switch cost 260 ns
// where these twenty instructions cost 3. Under the address sanitizer it is 500, for that clears
// what it noted of the whole stack, and 60 where it is told between which stacks a switch goes.
#if defined(__has_feature)
#define DETRUN_CLANG_ASAN __has_feature(address_sanitizer)
#define DETRUN_CLANG_TSAN __has_feature(thread_sanitizer)
#else
#define DETRUN_CLANG_ASAN 0
#define DETRUN_CLANG_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__) || DETRUN_CLANG_ASAN
#define DETRUN_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define DETRUN_ASAN 0
#endif
#if defined(__x86_64__) && !defined(__CET__) && !defined(__SANITIZE_THREAD__) && !DETRUN_CLANG_TSAN
#define DETRUN_OWN_SWITCH 1
#else
#define DETRUN_OWN_SWITCH 0
#include <ucontext.h>
#endif

#if DETRUN_OWN_SWITCH
extern "C" void detrun_switch_stack(void** save, void* to);
// Saves the registers that a call keeps (System V ABI) on the old stack, takes them off the new.
asm(R"(
.text
.globl detrun_switch_stack
.hidden detrun_switch_stack
.type detrun_switch_stack, @function
detrun_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size detrun_switch_stack, .-detrun_switch_stack
)");
#endif

namespace detrun::emulation {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr std::uint64_t kStackGuard = 0x6b636174735f6e65ull;
constexpr int kWarp = 32;

#if DETRUN_OWN_SWITCH
struct Context {
  void* top = nullptr;  // where its registers lie; null: it never ran
  // What the address sanitizer wants to know of the stack. The scheduler's is found by the fiber
  // that it switches to.
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* fake_frames = nullptr;
};
#if DETRUN_ASAN
void before_switch(Context& from, const Context& to) {
  __sanitizer_start_switch_fiber(&from.fake_frames, to.bottom, to.bytes);
}
void after_switch(Context& arrived) {
  __sanitizer_finish_switch_fiber(arrived.fake_frames, nullptr, nullptr);
}
void first_arrival(Context& origin) {
  __sanitizer_finish_switch_fiber(nullptr, &origin.bottom, &origin.bytes);
}
// The frames of a fiber that never returned are still noted.
void forget_frames(const Context& context) {
  if (context.top == nullptr) return;
  const auto used = static_cast<const std::byte*>(context.bottom) + context.bytes;
  __asan_unpoison_memory_region(
      context.top, static_cast<std::size_t>(used - static_cast<std::byte*>(context.top)));
}
#else
void before_switch(Context& /*from*/, const Context& /*to*/) {}
void after_switch(Context& /*arrived*/) {}
void first_arrival(Context& /*origin*/) {}
void forget_frames(const Context& /*context*/) {}
#endif
void switch_context(Context& from, Context& to) {
  before_switch(from, to);
  detrun_switch_stack(&from.top, to.top);
  after_switch(from);
}
void make_context(Context& context, std::byte* stack, void (*entry)()) {
  forget_frames(context);
  // As after a call: `ret` finds the entry, which then sees a stack 8 below a multiple of 16.
  void** top = reinterpret_cast<void**>(stack + kStackBytes);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  context = {top, stack, kStackBytes, nullptr};
}
#else
using Context = ucontext_t;
void switch_context(Context& from, Context& to) { swapcontext(&from, &to); }
void first_arrival(Context& /*origin*/) {}
void make_context(Context& context, std::byte* stack, void (*entry)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, entry, 0);
}
#endif

enum class State { kReady, kAtBarrier, kDone };

struct Fiber {
  Context context;
  std::byte* stack;
  Dim index;
  State state;
  std::uint32_t collectives;  // how many this lane has entered
  int barrier_line;
};

// Memory for the stacks of a launch. A thread keeps that of its last one: to ask for fresh pages
// would take longer than most launches.
struct Stacks {
  std::unique_ptr<std::byte[]> memory;
  std::size_t bytes = 0;
};
thread_local Stacks spare_stacks;

Stacks take_stacks(std::size_t bytes) {
  Stacks stacks = std::exchange(spare_stacks, {});
  if (stacks.bytes < bytes) {
    stacks = {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
#if DETRUN_ASAN
  } else {  // frames of fibers that never returned are still noted
    __asan_unpoison_memory_region(stacks.memory.get(), bytes);
#endif
  }
  return stacks;
}

struct Machine {
  Dim grid, block, at;
  LaneOrder order;
  Stacks stacks;
  std::vector<Fiber> fibers;
  std::vector<Exchange> exchanges;  // two a warp, that alternate
  std::map<std::tuple<std::string, int, std::string>, SharedStorage> shared;
  const std::function<void()>* body;
  Context scheduler;
  int current;
  std::uint32_t barriers;   // passed in this block, from 1
  std::uint64_t block_run;  // blocks started, from 1
  Problem problem;

  Fiber& running() { return fibers[static_cast<std::size_t>(current)]; }
};

thread_local Machine* machine = nullptr;

void yield_to_scheduler() { switch_context(machine->running().context, machine->scheduler); }

void fiber_main() {
  first_arrival(machine->scheduler);
  (*machine->body)();
  machine->running().state = State::kDone;
  for (;;) yield_to_scheduler();
}

std::string place(const Machine& m) {
  return " (block " + std::to_string(m.at.x) + "," + std::to_string(m.at.y) + "," +
         std::to_string(m.at.z) + ", thread " + std::to_string(m.current) + ")";
}

void start_block(Machine& m) {
  m.barriers = 1;
  ++m.block_run;
  for (Exchange& exchange : m.exchanges) exchange.round = 0;
  for (Fiber& fiber : m.fibers) {
    fiber.state = State::kReady;
    fiber.collectives = 0;
    std::memcpy(fiber.stack, &kStackGuard, sizeof(kStackGuard));
    make_context(fiber.context, fiber.stack, fiber_main);
  }
}

// One pass over all threads in order. A lane runs until its next collective, barrier or end.
bool run_pass(Machine& m) {
  bool any = false;
  const int n_threads = static_cast<int>(m.fibers.size());
  for (int i = 0; i < n_threads && m.problem.empty(); ++i) {
    m.current = m.order == LaneOrder::kAscending ? i : n_threads - 1 - i;
    if (m.running().state != State::kReady) continue;
    any = true;
    switch_context(m.scheduler, m.running().context);
  }
  return any;
}

// Lets the threads go on that wait at a barrier; false: none does, the block is at its end.
bool pass_barrier(Machine& m) {
  std::size_t waiting = 0;
  bool same_line = true;
  for (const Fiber& fiber : m.fibers) {
    if (fiber.state != State::kAtBarrier) continue;
    ++waiting;
    same_line = same_line && fiber.barrier_line == m.fibers[0].barrier_line;
  }
  if (waiting == 0) return false;
  if (waiting != m.fibers.size()) {
    m.problem = "a barrier that some threads never reach" + place(m);
  } else if (!same_line) {
    m.problem = "different barriers in one block" + place(m);
  }
  ++m.barriers;
  for (Fiber& fiber : m.fibers) fiber.state = State::kReady;
  return m.problem.empty();
}

void run_block(Machine& m) {
  start_block(m);
  do {
    while (run_pass(m)) {
    }
  } while (m.problem.empty() && pass_barrier(m));
  for (const Fiber& fiber : m.fibers) {
    if (std::memcmp(fiber.stack, &kStackGuard, sizeof(kStackGuard)) != 0)
      m.problem = "a thread's local variables exceed the emulated stack" + place(m);
  }
}

}  // namespace

Problem launch(Dim grid, Dim block, LaneOrder order, const std::function<void()>& body) {
  Machine m{};
  m.grid = grid;
  m.block = block;
  m.order = order;
  m.body = &body;
  m.fibers.resize(std::size_t{block.x} * block.y * block.z);
  // One more in front: where the first goes beyond its own, that is found, and harms nobody.
  m.stacks = take_stacks((m.fibers.size() + 1) * kStackBytes + 63);
  auto first = reinterpret_cast<std::uintptr_t>(m.stacks.memory.get());
  std::byte* stack = m.stacks.memory.get() + kStackBytes + (64 - first % 64) % 64;
  Dim index{0, 0, 0};
  for (Fiber& fiber : m.fibers) {
    fiber.stack = stack;
    stack += kStackBytes;
    fiber.index = index;
    if (++index.x < block.x) continue;
    index.x = 0;
    if (++index.y < block.y) continue;
    index.y = 0;
    ++index.z;
  }
  m.exchanges.resize((m.fibers.size() + kWarp - 1) / kWarp * 2);
  Machine* const outer = machine;
  machine = &m;
  for (m.at.z = 0; m.at.z < grid.z; ++m.at.z) {
    for (m.at.y = 0; m.at.y < grid.y; ++m.at.y) {
      for (m.at.x = 0; m.at.x < grid.x && m.problem.empty(); ++m.at.x) run_block(m);
    }
  }
  machine = outer;
  spare_stacks = std::move(m.stacks);
  return m.problem;
}

Dim thread_index() { return machine->running().index; }
Dim block_index() { return machine->at; }
Dim block_size() { return machine->block; }
Dim grid_size() { return machine->grid; }
int lane() { return machine->current % kWarp; }

void fail(const char* what, const char* name) {
  if (machine->problem.empty()) {
    machine->problem =
        std::string(what) + (name == nullptr ? "" : std::string(" ") + name) + place(*machine);
  }
  // The scheduler sees the problem and never resumes any fiber of this launch.
  for (;;) yield_to_scheduler();
}

void barrier(int line) {
  machine->running().barrier_line = line;
  machine->running().state = State::kAtBarrier;
  yield_to_scheduler();
}

const Exchange& exchange(const std::uint32_t* words, int count, Collective kind, int mask,
                         int line) {
  Machine& m = *machine;
  const auto warp = static_cast<std::size_t>(m.current / kWarp);
  if ((warp + 1) * kWarp > m.fibers.size())
    fail("a full-warp collective in a block whose size is no multiple of 32");
  const std::uint32_t round = ++m.running().collectives;
  Exchange& shared = m.exchanges[warp * 2 + (round & 1)];
  if (shared.round != round) {
    shared.round = round;
    shared.arrived = 0;
    shared.kind = kind;
    shared.mask = mask;
    shared.line = line;
  }
  if (shared.kind != kind || shared.mask != mask || shared.line != line)
    fail("different collectives in one warp");
  std::memcpy(shared.words[lane()], words, static_cast<std::size_t>(count) * sizeof(words[0]));
  ++shared.arrived;
  // All lanes enter this collective before any leaves it: two exchanges are enough, because nobody
  // can be two rounds ahead.
  yield_to_scheduler();
  if (shared.arrived != kWarp) fail("a warp collective that not all lanes reach");
  return shared;
}

SharedStorage& shared_storage(const char* file, int line, const char* name, std::size_t count,
                              std::size_t element_bytes) {
  SharedStorage& storage = machine->shared[{file, line, name}];
  if (storage.block != machine->block_run) {
    storage.bytes.assign(count * element_bytes, std::byte{0xCD});
    storage.accesses.assign(count, Access{});
    storage.name = name;
    storage.block = machine->block_run;
  }
  if (storage.bytes.size() != count * element_bytes)
    fail("a shared array declared with two sizes:", name);
  return storage;
}

void note_read(SharedStorage& storage, std::size_t index) {
  Access& access = storage.accesses[index];
  const std::uint32_t self = static_cast<std::uint32_t>(machine->current) + 1;
  const std::uint32_t now = machine->barriers;
  if (access.writer == 0) fail("read of uninitialised shared memory:", storage.name);
  if (access.writer != self && access.written == now)
    fail("read of another thread's shared write without a barrier between:", storage.name);
  access.reader = access.read == now && access.reader != self ? kManyReaders : self;
  access.read = now;
}

void note_write(SharedStorage& storage, std::size_t index) {
  Access& access = storage.accesses[index];
  const std::uint32_t self = static_cast<std::uint32_t>(machine->current) + 1;
  const std::uint32_t now = machine->barriers;
  if (access.read == now && access.reader != self)
    fail("write of shared memory that another thread read without a barrier between:",
         storage.name);
  if (access.writer != 0 && access.writer != self && access.written == now)
    fail("two threads' shared writes without a barrier between:", storage.name);
  access.writer = self;
  access.written = now;
}

}  // namespace detrun::emulation
