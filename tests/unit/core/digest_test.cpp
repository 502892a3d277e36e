// Digests against published test vectors.
#include "detrun/digest.h"

#include <doctest/doctest.h>

#include "detrun/error.h"

namespace detrun {

TEST_CASE("SHA-256 gives the vectors of FIPS 180-4") {
  CHECK(to_hex(sha256("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(to_hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(Sha256().update("a").update("bc").finish() == sha256("abc"));
}

TEST_CASE("HMAC-SHA-256 gives case 2 of RFC 4231") {
  CHECK(to_hex(hmac_sha256(as_bytes("Jefe"), as_bytes("what do ya want for nothing?"))) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("XXH3-128 is the canonical big-endian form") {
  // Empty input, seed 0: the value of the xxHash specification.
  CHECK(to_hex(xxh3_128({})) == "99aa06d3014798d86001c324468d497f");
}

TEST_CASE("a part is its length as eight little-endian bytes, then the bytes") {
  using namespace std::string_view_literals;
  CHECK(Sha256().update_part("ab").finish() == sha256("\x02\0\0\0\0\0\0\0ab"sv));
  CHECK(Sha256().update_u64(0x0102).finish() == sha256("\x02\x01\0\0\0\0\0\0"sv));
}

TEST_CASE("a file that cannot be read is a usage error that names it") {
  try {
    sha256_file("/nonexistent/file");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kUsage);
    CHECK(std::string(error.what()).find("/nonexistent/file") != std::string::npos);
  }
}

}  // namespace detrun
