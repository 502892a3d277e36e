// The fiber scheduler behind emulation.h: one OS thread runs one launch; ucontext fibers, because
// they are portable and every sanitizer knows them. A failure unwinds by never resuming a fiber.
#include "kernels/cuda/emulation.h"

#include <ucontext.h>

#include <map>
#include <memory>

namespace detrun::emulation {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr int kWarp = 32;

enum class State { kReady, kAtBarrier, kDone };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<std::byte[]> stack;
  State state;
  std::uint32_t collectives;  // how many this lane has entered
};

struct Exchange {  // one warp's words of one collective; two of them alternate
  std::uint32_t words[kWarp];
  int kinds[kWarp];
};

struct Machine {
  Dim grid, block, at;
  LaneOrder order;
  std::vector<Fiber> fibers;
  std::vector<Exchange> exchanges;  // two a warp
  std::map<int, SharedStorage> shared;
  const std::function<void()>* body;
  ucontext_t scheduler;
  int current;
  std::uint32_t barriers;
  Problem problem;
};

thread_local Machine* machine = nullptr;

void yield_to_scheduler() {
  swapcontext(&machine->fibers[static_cast<std::size_t>(machine->current)].context,
              &machine->scheduler);
}

void fiber_main() {
  (*machine->body)();
  machine->fibers[static_cast<std::size_t>(machine->current)].state = State::kDone;
  yield_to_scheduler();
}

void start_block(Machine& m, int n_threads) {
  m.shared.clear();
  m.barriers = 0;
  for (int i = 0; i < n_threads; ++i) {
    Fiber& fiber = m.fibers[static_cast<std::size_t>(i)];
    fiber.state = State::kReady;
    fiber.collectives = 0;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &m.scheduler;
    makecontext(&fiber.context, fiber_main, 0);
  }
}

// One pass over all threads in order. A lane runs until its next collective, barrier or end.
bool run_pass(Machine& m, int n_threads) {
  bool any = false;
  for (int i = 0; i < n_threads && m.problem.empty(); ++i) {
    const int thread = m.order == LaneOrder::kAscending ? i : n_threads - 1 - i;
    if (m.fibers[static_cast<std::size_t>(thread)].state != State::kReady) continue;
    any = true;
    m.current = thread;
    swapcontext(&m.scheduler, &m.fibers[static_cast<std::size_t>(thread)].context);
  }
  return any;
}

void run_block(Machine& m, int n_threads) {
  start_block(m, n_threads);
  for (;;) {
    while (run_pass(m, n_threads)) {
    }
    if (!m.problem.empty()) return;
    int waiting = 0, done = 0;
    for (const Fiber& fiber : m.fibers) {
      waiting += fiber.state == State::kAtBarrier;
      done += fiber.state == State::kDone;
    }
    if (waiting == 0) return;
    if (done != 0) {
      m.problem = "a barrier that some threads never reach";
      return;
    }
    ++m.barriers;
    for (Fiber& fiber : m.fibers) fiber.state = State::kReady;
  }
}

}  // namespace

Problem launch(Dim grid, Dim block, LaneOrder order, const std::function<void()>& body) {
  const int n_threads = static_cast<int>(block.x * block.y * block.z);
  Machine m{};
  m.grid = grid;
  m.block = block;
  m.order = order;
  m.body = &body;
  m.fibers.resize(static_cast<std::size_t>(n_threads));
  for (Fiber& fiber : m.fibers) fiber.stack = std::make_unique<std::byte[]>(kStackBytes);
  m.exchanges.resize((m.fibers.size() + kWarp - 1) / kWarp * 2);
  machine = &m;
  for (m.at.z = 0; m.at.z < grid.z; ++m.at.z) {
    for (m.at.y = 0; m.at.y < grid.y; ++m.at.y) {
      for (m.at.x = 0; m.at.x < grid.x && m.problem.empty(); ++m.at.x) run_block(m, n_threads);
    }
  }
  machine = nullptr;
  return m.problem;
}

unsigned thread_index_x() { return static_cast<unsigned>(machine->current) % machine->block.x; }
unsigned block_index_x() { return machine->at.x; }
unsigned block_index_y() { return machine->at.y; }
std::uint32_t barriers_passed() { return machine->barriers; }
std::uint32_t current_thread() { return static_cast<std::uint32_t>(machine->current); }

void fail(const char* what) {
  if (machine->problem.empty()) {
    machine->problem = std::string(what) + " (block " + std::to_string(machine->at.x) + "," +
                       std::to_string(machine->at.y) + ", thread " +
                       std::to_string(machine->current) + ")";
  }
  // The scheduler sees the problem and never resumes any fiber of this launch.
  for (;;) yield_to_scheduler();
}

void barrier() {
  machine->fibers[static_cast<std::size_t>(machine->current)].state = State::kAtBarrier;
  yield_to_scheduler();
}

std::uint32_t exchange_xor(std::uint32_t value, int mask, int kind) {
  Machine& m = *machine;
  const int self = m.current;
  const int lane = self % kWarp;
  const int first = self - lane;
  if (first + kWarp > static_cast<int>(m.fibers.size()))
    fail("a full-warp collective in a block whose size is no multiple of 32");
  Fiber& fiber = m.fibers[static_cast<std::size_t>(self)];
  const std::uint32_t round = ++fiber.collectives;
  Exchange& exchange = m.exchanges[static_cast<std::size_t>(first / kWarp) * 2 + (round & 1)];
  exchange.words[lane] = value;
  exchange.kinds[lane] = kind;
  // All lanes enter this collective before any leaves it: two buffers are enough, because nobody
  // can be two rounds ahead.
  yield_to_scheduler();
  for (int i = 0; i < kWarp; ++i) {
    const Fiber& other = m.fibers[static_cast<std::size_t>(first) + static_cast<std::size_t>(i)];
    if (other.collectives != round && other.collectives != round + 1)
      fail("a warp collective that not all lanes reach");
    if (exchange.kinds[i] != kind) fail("different collectives in one warp");
  }
  return exchange.words[lane ^ mask];
}

SharedStorage& shared_storage(int line, std::size_t count, std::size_t element_bytes) {
  SharedStorage& storage = machine->shared[line];
  if (storage.writer.empty()) {
    storage.bytes.assign(count * element_bytes, std::byte{0xCD});
    storage.writer.assign(count, 0);
    storage.written.assign(count, 0);
  }
  return storage;
}

}  // namespace detrun::emulation
