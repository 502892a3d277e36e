// A ledger cut at any place or with any bit flipped: never a crash, never "ok" for another content.
// A flip that nothing reads (free space, header counters) may stay ok, but then every run must read
// as before.
#include <random>

#include "unit/ledger/helpers.h"

using namespace detrun;
using namespace detrun::test;

namespace {

/// Everything a command could print of a ledger.
std::string content_of(const Ledger& ledger) {
  std::string all;
  for (const RunRef& ref : ledger.runs()) {
    all += std::to_string(ref.number) + ref.id;
    const RunRecord run = ledger.read(ref.number, true);
    all += run_to_json(run, true).dump();
    const auto seal = ledger.seal(ref.number);
    all += seal ? to_hex(*seal) : "none";
  }
  return all;
}

struct Look {
  ExitCode code = ExitCode::kOk;
  bool ok = false;
  std::string content;
};

Look look_at(const std::string& path) {
  Look look;
  look.code = exit_code_of([&] {
    const auto ledger = Ledger::open_for_reading(path);
    look.ok = ledger->verify().ok;
    if (look.ok) look.content = content_of(*ledger);
  });
  return look;
}

}  // namespace

TEST_CASE("a cut ledger is TAMPERED, wherever it was cut") {
  const TempDir dir;
  record_three(dir.file("honest"));
  const std::string bytes = read_bytes(dir.file("honest"));
  std::mt19937 random(7);
  std::vector<std::size_t> sizes = {1, 15, 16, 71, 72, 99, 100, 101, 511, 512, 4095, 4096, 4097};
  for (std::size_t at = 512; at < bytes.size(); at += 512) sizes.push_back(at);
  for (int i = 0; i < 50; ++i) sizes.push_back(random() % bytes.size());
  sizes.push_back(bytes.size() - 1);
  for (const std::size_t size : sizes) {
    CAPTURE(size);
    write_bytes(dir.file("cut"), bytes.substr(0, size));
    const Look look = look_at(dir.file("cut"));
    CHECK(!look.ok);
    const bool unrecognisable = size < 16;
    if (look.code != ExitCode::kOk)
      CHECK(look.code == (unrecognisable ? ExitCode::kUsage : ExitCode::kTampered));
    const ExitCode recording = exit_code_of([&] { Ledger::open_for_recording(dir.file("cut")); });
    if (size >= 16 && size < 4096) CHECK(recording == ExitCode::kTampered);
    std::filesystem::remove(dir.file("cut-wal"));
    std::filesystem::remove(dir.file("cut-shm"));
  }
}

TEST_CASE("a flipped bit is TAMPERED or changes nothing that is read") {
  const TempDir dir;
  record_three(dir.file("honest"));
  const std::string bytes = read_bytes(dir.file("honest"));
  const std::string honest = content_of(*Ledger::open_for_reading(dir.file("honest")));
  std::mt19937 random(20261129);
  std::vector<std::size_t> bits;
  for (std::size_t bit = 0; bit < 100 * 8; bit += 3) bits.push_back(bit);  // the header
  for (int i = 0; i < 600; ++i) bits.push_back(random() % (bytes.size() * 8));
  int found = 0;
  for (const std::size_t bit : bits) {
    CAPTURE(bit);
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    write_bytes(dir.file("flipped"), flipped);
    const Look look = look_at(dir.file("flipped"));
    if (look.ok) {
      CHECK(look.content == honest);
    } else {
      ++found;
      const bool header = bit / 8 < 100;  // magic, application_id, user_version: no ledger of ours
      CHECK((look.code == ExitCode::kOk || look.code == ExitCode::kTampered ||
             (header && look.code == ExitCode::kUsage)));
    }
    for (const char* suffix : {"flipped-wal", "flipped-shm", "flipped-journal"})
      std::filesystem::remove(dir.file(suffix));
  }
  CHECK(found > 200);
}

TEST_CASE("a damaged write-ahead log ends where it is whole, and what is left verifies") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  record_run(*ledger, 100);
  record_run(*ledger, 100);
  const std::string main = read_bytes(dir.file("l")), wal = read_bytes(dir.file("l-wal"));
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    std::string damaged = wal;
    const std::size_t at = random() % damaged.size();
    CAPTURE(at);
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    if (i % 2 == 0) damaged.resize(at);
    write_bytes(dir.file("copy"), main);
    write_bytes(dir.file("copy-wal"), damaged);
    const Look look = look_at(dir.file("copy"));
    // SQLite's checksums cut the log at the damage: an older state of the ledger, or none yet.
    CHECK((look.ok || look.code == ExitCode::kUsage));
    std::filesystem::remove(dir.file("copy-wal"));
    std::filesystem::remove(dir.file("copy-shm"));
  }
}
