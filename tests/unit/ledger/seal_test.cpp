// The sealed bytes, against values computed by another program (Python hashlib and hmac) and given
// in detrun-ledger(5).
#include "ledger/seal.h"

#include "helpers.h"

using namespace detrun;
using namespace detrun::ledger;
using namespace detrun::test;

namespace {

RunSecret counting_secret() {
  RunSecret secret{};
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::uint8_t>(i);
  return secret;
}

std::vector<Sha256Digest> step_leaves(std::uint64_t count) {
  std::vector<Sha256Digest> leaves;
  for (const StepRecord& step : make_steps(0, count))
    leaves.push_back(step_leaf(counting_secret(), step));
  return leaves;
}

std::string manual() { return read_bytes(std::string(DETRUN_SOURCE_DIR) + "/man/detrun-ledger.5"); }

/// A vector of the manual page: given here once, and looked up there.
void check_vector(const Sha256Digest& digest, const std::string& expected) {
  CHECK(to_hex(digest) == expected);
  CHECK_MESSAGE(manual().find(expected) != std::string::npos, expected);
}

}  // namespace

TEST_CASE("leaves of every type are those of the manual") {
  const RunSecret secret = counting_secret();
  check_vector(hmac_sha256(std::as_bytes(std::span(secret)), as_bytes("field:status")),
               "62ef3427c124daaeaf167dd786d38998c50dbff2e0d7fb2c75fd37178fc4cee3");
  check_vector(field_leaf(secret, "status", "finished"),
               "598bed912a6c6169d7620841b16ad1411ffae77ebf421fcfddcda550ac42c597");
  check_vector(field_leaf(secret, "x", {}),
               "693ae9783a1c3823a215dc7b701cc6fe8d98dd6896502e2dc49d1fcbbc69f64f");
  check_vector(field_leaf(secret, "number", std::int64_t{-2}),
               "b5aa194d531d34c0eea15ab36cb4df25c32549526f4aa145528754f2894ffbe6");
  check_vector(field_leaf(secret, "prompt", Blob{std::string("\xff\0", 2)}),
               "65f3d5d770488c2f3eca9ad017595a1363d47d2737dce6dd86191f8f3550b347");
  check_vector(step_leaves(1)[0],
               "4583a28392e9250d9d16e40692a9be24bbd80295908c57d03d4957c87ed5a2bc");
  check_vector(step_leaves(66)[65],
               "1c1fb20079d7f92c7729b0103bef8555b0300edf57c97db927f64f8109684e85");
}

TEST_CASE("the same bytes as another type have another leaf") {
  const RunSecret secret = counting_secret();
  CHECK(field_leaf(secret, "a", "1") != field_leaf(secret, "a", Blob{"1"}));
  CHECK(field_leaf(secret, "a", "") != field_leaf(secret, "a", {}));
  CHECK(field_leaf(secret, "a", "1") != field_leaf(secret, "b", "1"));
  CHECK(field_leaf(secret, "a", "1") != field_leaf(RunSecret{}, "a", "1"));
}

TEST_CASE("trees are those of RFC 6962") {
  check_vector(merkle_root(step_leaves(3)),
               "5f9c332e542123fc393dfa96bfc757d16aaa08e460b0506a038987f8ff0e6efa");
  check_vector(merkle_root(step_leaves(64)),
               "16ea69d670fcd5194a8410fe509c0d4e83015ce2b1c5b028f444935d86c598e5");
  check_vector(merkle_root(step_leaves(130)),
               "7ef7dde403050922197402b0f286e66095444fe787a633a566acd845bb25a2e3");
  CHECK(to_hex(merkle_root({})) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(merkle_root(step_leaves(1)) == step_leaves(1)[0]);
  CHECK(to_hex(merkle_root(step_leaves(2))) ==
        "3b6f61418c8cac8e5c3ce27599e5389cb03e74bc17711ae12abc819963e0abb6");
  CHECK(to_hex(merkle_root(step_leaves(65))) ==
        "84852987b9c700a0d1566bd23c7859a742f3ea92314f15e8b76936c875642554");
}

TEST_CASE("the tree over block roots is the tree over all steps") {
  for (const std::uint64_t count : {0, 1, 2, 63, 64, 65, 127, 128, 129, 192, 257, 320, 700}) {
    StepTree tree;
    const std::vector<Sha256Digest> leaves = step_leaves(count);
    for (const Sha256Digest& leaf : leaves) tree.add(leaf);
    CHECK(tree.size() == count);
    CHECK(tree.blocks().size() == (count + 63) / 64);
    CHECK_MESSAGE(merkle_root(tree.blocks()) == merkle_root(leaves), count);
  }
}

TEST_CASE("the seal of a run is that of the manual") {
  RunContent content;
  content.id = "01890a5d-ac96-774b-bcce-b302099a8057";
  content.secret = counting_secret();
  content.fields = {{"status", "finished"},
                    {"number", std::int64_t{1}},
                    {"error", {}},
                    {"prompt", Blob{"Hi\xff"}}};
  for (const StepRecord& step : make_steps(0, 130)) content.add_step(step);
  const SealedRun sealed = seal_content(content);
  CHECK(sealed.blocks.size() == 3);
  REQUIRE(sealed.leaves.size() == 6);
  std::vector<Sha256Digest> hashes;
  for (const auto& [name, hash] : sealed.leaves) hashes.push_back(hash);
  CHECK(sealed.leaves[3].first == "run_secret");
  CHECK(sealed.leaves[5].first == "text");
  check_vector(merkle_root(hashes),
               "cfddc99c2b16de7ff7dbf713994a435a2fe90a132eed50f462be10c6e420c935");
  check_vector(sealed.seal, "18b3729f6fd1e872a0d132285c576be6ce2bcb58fdacf2d7fb250a038ed001a7");
}

TEST_CASE("a step's value is 29 bytes in the order of the manual") {
  StepRecord step{5, -2, {}, 0x01020304, 0x80000000, "outside the leaf"};
  step.logits_xxh3.fill(0xee);
  CHECK(to_hex(as_bytes(encode_step(step))) ==
        "03feffffffeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee0403020100000080");
}

TEST_CASE("a block is named by its whole range") {
  CHECK(block_name(0) == "steps[0..63]");
  CHECK(block_name(1) == "steps[64..127]");
  CHECK(block_name(67108863) == "steps[4294967232..4294967295]");
}
