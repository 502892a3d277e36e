// The GGUF image of a synthetic model: metadata, a vocabulary of bytes and short words, tensor
// descriptions, and the data, filled in pieces by several threads. The image is a file of the
// kernel's that only this process holds: it has a path, so that everything reads it as any model.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <mutex>
#include <thread>

#include "detrun/error.h"
#include "detrun/model_file.h"
#include "detrun/text.h"
#include "run/bench_model.h"
#include "run/bench_shapes.h"

namespace detrun {
namespace {

constexpr SyntheticShape kShapes[] = {
    {"135m", 576, 30, 9, 3, 64, 1536, 49152, false, 2048, 10000.0F},
    {"1.1b", 2048, 22, 32, 4, 64, 5632, 32000, true, 2048, 10000.0F},
    {"8b", 4096, 32, 32, 8, 128, 14336, 128256, true, 8192, 500000.0F},
};

constexpr std::uint64_t kAlignment = 32;
constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;
constexpr std::uint32_t kFirstByteToken = 3, kFirstWord = 3 + 256, kSpaceToken = kFirstWord;

/// Little-endian GGUF in the order in which it is written. Strings have a u64 length before them.
class GgufText {
 public:
  void u32(std::uint32_t value) { number(value); }
  void u64(std::uint64_t value) { number(value); }
  void i32(std::int32_t value) { number(value); }
  void f32(float value) { number(value); }
  void string(std::string_view text) {
    u64(text.size());
    bytes_ += text;
  }
  void raw(std::string_view bytes) { bytes_ += bytes; }

  void key(std::string_view name, MetaType type) {
    string(name);
    u32(static_cast<std::uint32_t>(type));
    ++n_keys_;
  }
  void key_u32(std::string_view name, std::uint32_t value) {
    key(name, MetaType::kU32);
    u32(value);
  }
  void key_f32(std::string_view name, float value) {
    key(name, MetaType::kF32);
    f32(value);
  }
  void key_string(std::string_view name, std::string_view value) {
    key(name, MetaType::kString);
    string(value);
  }
  void key_array(std::string_view name, MetaType type, std::uint64_t count) {
    key(name, MetaType::kArray);
    u32(static_cast<std::uint32_t>(type));
    u64(count);
  }

  const std::string& bytes() const { return bytes_; }
  std::uint64_t n_keys() const { return n_keys_; }

 private:
  template <class T>
  void number(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }

  std::string bytes_;
  std::uint64_t n_keys_ = 0;
};

/// Control tokens, bytes, the mark of a space, words: a, b ... z, aa ... without and with a space.
std::string token_text(std::uint32_t id) {
  constexpr std::string_view kControls[] = {"<unk>", "<s>", "</s>"};
  if (id < kFirstByteToken) return std::string(kControls[id]);
  if (id < kFirstWord) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    const std::uint32_t byte = id - kFirstByteToken;
    return std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">";
  }
  if (id == kSpaceToken) return "\u2581";
  std::string word;
  for (std::uint32_t n = (id - kSpaceToken - 1) / 2 + 1; n > 0; n = (n - 1) / 26) {
    word.insert(word.begin(), static_cast<char>('a' + (n - 1) % 26));
  }
  return (id % 2 != 0 ? "\u2581" : "") + word;
}

void write_vocabulary(GgufText& out, std::uint32_t n_vocab) {
  out.key_string("tokenizer.ggml.model", "llama");
  out.key_array("tokenizer.ggml.tokens", MetaType::kString, n_vocab);
  for (std::uint32_t id = 0; id < n_vocab; ++id) out.string(token_text(id));
  out.key_array("tokenizer.ggml.scores", MetaType::kF32, n_vocab);
  for (std::uint32_t id = 0; id < n_vocab; ++id) {
    out.f32(id < kFirstWord ? 0.0F : -static_cast<float>(id - kFirstWord + 1));
  }
  out.key_array("tokenizer.ggml.token_type", MetaType::kI32, n_vocab);
  constexpr std::int32_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;
  for (std::uint32_t id = 0; id < n_vocab; ++id) {
    const std::int32_t special = id == 0 ? kUnknown : id < kFirstByteToken ? kControl : kByte;
    out.i32(id < kFirstWord ? special : kNormal);
  }
  out.key_u32("tokenizer.ggml.bos_token_id", 1);
  out.key_u32("tokenizer.ggml.eos_token_id", 2);
  out.key_u32("tokenizer.ggml.unknown_token_id", 0);
  out.key("tokenizer.ggml.add_bos_token", MetaType::kBool);
  out.raw(std::string_view("\1", 1));
}

GgufText metadata_of(const SyntheticShape& shape, std::string_view type) {
  GgufText out;
  out.key_string("general.architecture", "llama");
  out.key_string("general.name", "synthetic " + std::string(shape.name) + " " + std::string(type));
  out.key_u32("general.file_type", synthetic_file_type(type));
  out.key_u32("llama.context_length", shape.n_ctx_train);
  out.key_u32("llama.embedding_length", shape.n_embd);
  out.key_u32("llama.block_count", shape.n_layers);
  out.key_u32("llama.feed_forward_length", shape.n_ff);
  out.key_u32("llama.attention.head_count", shape.n_heads);
  out.key_u32("llama.attention.head_count_kv", shape.n_kv_heads);
  out.key_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  out.key_u32("llama.rope.dimension_count", shape.head_dim);
  out.key_f32("llama.rope.freq_base", shape.rope_base);
  out.key_u32("llama.vocab_size", shape.n_vocab);
  write_vocabulary(out, shape.n_vocab);
  return out;
}

std::uint64_t aligned(std::uint64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

std::uint64_t tensor_bytes(const SyntheticTensor& tensor) {
  return tensor.n_rows * *row_bytes(qtype_info(tensor.type), tensor.row_elems);
}

/// Everything before the data of the first tensor, padded.
std::string head_of(const SyntheticShape& shape, std::string_view type,
                    const std::vector<SyntheticTensor>& tensors) {
  constexpr std::uint32_t kVersion = 3;
  const GgufText metadata = metadata_of(shape, type);
  GgufText out;
  out.raw("GGUF");
  out.u32(kVersion);
  out.u64(tensors.size());
  out.u64(metadata.n_keys());
  out.raw(metadata.bytes());
  std::uint64_t offset = 0;
  for (const SyntheticTensor& tensor : tensors) {
    const bool is_vector = tensor.n_rows == 1;
    out.string(tensor.name);
    out.u32(is_vector ? 1 : 2);
    out.u64(tensor.row_elems);
    if (!is_vector) out.u64(tensor.n_rows);
    out.u32(static_cast<std::uint32_t>(tensor.type));
    out.u64(offset);
    offset += aligned(tensor_bytes(tensor));
  }
  std::string head = out.bytes();
  head.resize(aligned(head.size()), '\0');
  return head;
}

/// Bytes that the kernel thinks can still be given out; nullopt where it does not say.
std::optional<std::uint64_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    if (word != "MemAvailable:") continue;
    if (!(file >> word)) return std::nullopt;
    const auto kib = parse_u64(word);
    if (!kib) return std::nullopt;
    return *kib * 1024;
  }
  return std::nullopt;
}

/// Running out of memory would end the process without a word.
void check_memory(std::string_view what, std::uint64_t image_bytes) {
  const std::uint64_t needed = 2 * image_bytes;  // the image, and the kernels' own layout
  const std::optional<std::uint64_t> available = available_memory();
  if (!available || needed <= *available) return;
  throw_usage(std::string(what) + " needs about " + std::to_string(needed >> 20U) +
                  " MiB of memory, " + std::to_string(*available >> 20U) + " MiB are available",
              "take a smaller shape or type");
}

void write_at(int descriptor, std::uint64_t at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw_internal(std::string("cannot hold the weights in memory: ") + std::strerror(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    at += static_cast<std::uint64_t>(n);
  }
}

/// Some blocks of a tensor and where they belong in the image.
struct Piece {
  const SyntheticTensor* tensor;
  std::uint64_t first, count, at;
};

std::vector<Piece> pieces_of(const std::vector<SyntheticTensor>& tensors, std::uint64_t at,
                             SyntheticBytes made) {
  std::vector<Piece> pieces;
  for (const SyntheticTensor& tensor : tensors) {
    const std::uint64_t block = qtype_info(tensor.type).block_bytes;
    const std::uint64_t n_blocks = tensor_bytes(tensor) / block;
    const std::uint64_t step = kPieceBytes / block / 8 * 8;
    const bool left_out = made == SyntheticBytes::kNoMatrices && tensor.n_rows > 1;
    for (std::uint64_t first = 0; first < n_blocks && !left_out; first += step) {
      pieces.push_back({&tensor, first, std::min(step, n_blocks - first), at + first * block});
    }
    at += aligned(tensor_bytes(tensor));
  }
  return pieces;
}

/// Threads that take pieces until none is left. What one of them could not do is thrown by `run`.
class Filler {
 public:
  Filler(int descriptor, std::vector<Piece> pieces, const std::atomic<bool>& cancel)
      : descriptor_(descriptor), pieces_(std::move(pieces)), cancel_(cancel) {}

  void run(std::uint32_t n_threads, Observer& observer) {
    std::vector<std::jthread> threads;
    try {
      for (std::uint32_t i = 1; i < n_threads; ++i) threads.emplace_back([this] { work(nullptr); });
    } catch (const std::system_error&) {  // those that did start, and this one, do it
    }
    work(&observer);
    threads.clear();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work(Observer* observer) {
    try {
      std::vector<std::byte> bytes;
      for (std::size_t i = next_++; i < pieces_.size() && !cancel_; i = next_++) {
        const Piece& piece = pieces_[i];
        bytes.resize(piece.count * qtype_info(piece.tensor->type).block_bytes);
        fill_synthetic(piece.tensor->name, piece.tensor->type, piece.first, piece.count, bytes);
        write_at(descriptor_, piece.at, bytes);
        if (observer != nullptr) {
          observer->on_progress("making weights", i + 1, pieces_.size(), "pieces");
        }
      }
    } catch (...) {
      next_ = pieces_.size();
      const std::scoped_lock lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  int descriptor_;
  std::vector<Piece> pieces_;
  const std::atomic<bool>& cancel_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

const SyntheticShape& find_synthetic_shape(std::string_view name) {
  for (const SyntheticShape& shape : kShapes) {
    if (shape.name == name) return shape;
  }
  throw_usage("unknown shape '" + std::string(name) + "'", "known are 135m, 1.1b and 8b");
}

std::vector<std::string> synthetic_shapes() {
  std::vector<std::string> names;
  for (const SyntheticShape& shape : kShapes) names.emplace_back(shape.name);
  return names;
}

SyntheticModel::SyntheticModel(std::string_view shape_name, std::string_view type,
                               std::uint32_t n_threads, const std::atomic<bool>& cancel,
                               Observer& observer, SyntheticBytes made) {
  const SyntheticShape& shape = find_synthetic_shape(shape_name);
  const std::vector<SyntheticTensor> tensors = synthetic_tensors(shape_name, type);
  const std::string head = head_of(shape, type, tensors);
  std::uint64_t n_bytes = head.size();
  for (const SyntheticTensor& tensor : tensors) n_bytes += aligned(tensor_bytes(tensor));
  if (made == SyntheticBytes::kAll) {
    check_memory("shape " + std::string(shape_name) + " with type " + std::string(type), n_bytes);
  }

  descriptor_ = ::memfd_create("detrun-synthetic-model", MFD_CLOEXEC);
  if (descriptor_ < 0) {
    throw_internal(std::string("cannot hold the weights in memory: ") + std::strerror(errno));
  }
  path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  try {
    if (::ftruncate(descriptor_, static_cast<off_t>(n_bytes)) != 0) {
      throw_internal(std::string("cannot hold the weights in memory: ") + std::strerror(errno));
    }
    write_at(descriptor_, 0, as_bytes(head));
    Filler(descriptor_, pieces_of(tensors, head.size(), made), cancel).run(n_threads, observer);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SyntheticModel::~SyntheticModel() { ::close(descriptor_); }

}  // namespace detrun
