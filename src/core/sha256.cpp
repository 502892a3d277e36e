// SHA-256 and HMAC by OpenSSL: what commitments are made of. The rest of digest.h is digest.cpp, so
// that a program without commitments needs no crypto library.
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "detrun/digest.h"
#include "detrun/error.h"

namespace detrun {

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

namespace {

/// SHA-256 needs nothing that could be configured: the library's configuration file is not read,
/// which takes longer than most digests, and cannot change what computes them.
void start_library() {
  static const int started = OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  if (started != 1) throw_internal("the crypto library does not start");
}

}  // namespace

Sha256::Sha256() : state_(std::make_unique<State>()) {
  start_library();
  if (!state_->context || EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) != 1)
    throw_internal("SHA-256 is not available in the crypto library");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(std::span<const std::byte> bytes) {
  DETRUN_CHECK(state_ != nullptr);
  if (EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) != 1)
    throw_internal("SHA-256 update failed in the crypto library");
  return *this;
}

Sha256& Sha256::update_u64(std::uint64_t value) {
  std::array<std::byte, 8> little_endian{};
  for (int i = 0; i < 8; ++i)
    little_endian[static_cast<std::size_t>(i)] = static_cast<std::byte>(value >> (8 * i));
  return update(little_endian);
}

Sha256& Sha256::update_part(std::span<const std::byte> bytes) {
  return update_u64(bytes.size()).update(bytes);
}

Sha256Digest Sha256::finish() {
  DETRUN_CHECK(state_ != nullptr);
  Sha256Digest digest{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size) != 1 || size != digest.size())
    throw_internal("SHA-256 failed in the crypto library");
  state_.reset();
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) { return Sha256().update(bytes).finish(); }

Sha256Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  start_library();
  Sha256Digest digest{};
  unsigned int size = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(message.data());
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), data, message.size(),
           digest.data(), &size) == nullptr ||
      size != digest.size())
    throw_internal("HMAC-SHA-256 failed in the crypto library");
  return digest;
}

Sha256Digest sha256_file(const std::string& path) {
  struct Descriptor {
    int fd;
    ~Descriptor() {
      if (fd >= 0) ::close(fd);
    }
  };
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) throw_usage("cannot read '" + path + "': " + std::strerror(errno));
  std::vector<std::byte> block(std::size_t{1} << 20);
  Sha256 hasher;
  for (;;) {
    const ssize_t got = ::read(file.fd, block.data(), block.size());
    if (got == 0) return hasher.finish();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_usage("cannot read '" + path + "': " + std::strerror(errno));
    hasher.update(std::span(block).first(static_cast<std::size_t>(got)));
  }
}

}  // namespace detrun
