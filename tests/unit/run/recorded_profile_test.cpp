// The profile of a recorded run: what a ledger may say about it, and when it holds on another
// stack.
#include "run/recorded_profile.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "detrun/host.h"
#include "run/product_plan.h"
#include "run/product_test.h"
#include "tests/unit/run/pinning_backend.h"
#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using Calls = std::vector<std::string>;

/// A run under cublas, its recorder, and a memory in which its plan counts as tested.
struct Fixture {
  test::TempFolder folder;
  test::PinningBackend backend;
  ProductPlan plan = backend.pin_products(512);
  FieldMap fields;
  TestedProducts tested;
  std::string home = std::getenv("XDG_CACHE_HOME") == nullptr ? "" : std::getenv("XDG_CACHE_HOME");

  Fixture() {
    fields.emplace(field::numerics_profile, std::string(kCublas));
    fields.emplace(field::numerics_version, std::int64_t{kNumericsVersion});
    fields.emplace(field::params_products, plan_to_json(plan));
    fields.emplace(field::params_chunk, std::int64_t{512});
    fields.emplace(field::params_ctx, std::int64_t{4096});
    fields.emplace(field::stack_document,
                   collect_fingerprint(backend.info(), kCublas, plan.cublaslt).canonical());
    setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
    remember();
  }
  ~Fixture() {
    home.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", home.c_str(), 1);
  }

  /// The plan of this backend was tested before: the load of a test program would be itself.
  void remember() {
    TestedProducts().require(backend, plan, products_cache_folder(),
                             {"/bin/sh", "-c", "echo measured the ceilings >&2; exec sleep 600"});
    backend.calls.clear();
  }
  RecordedProfile recorded() {
    std::string why;
    const auto profile = read_profile(fields, why);
    REQUIRE_MESSAGE(profile, why);
    return *profile;
  }
  std::string why_not() {
    std::string why;
    CHECK_FALSE(read_profile(fields, why));
    return why;
  }
  ProfileStart start(bool force = false) {
    return start_profile_of(recorded(), backend, force, tested);
  }
};

TEST_CASE_FIXTURE(Fixture, "a run of the profile portable needs nothing of a stack") {
  fields = {{std::string(field::numerics_profile), std::string(kPortable)},
            {std::string(field::numerics_version), std::int64_t{kNumericsVersion}}};
  CHECK_FALSE(recorded().plan);
  CHECK(start().ready);
  CHECK(backend.calls == Calls{"own"});
}

TEST_CASE_FIXTURE(Fixture, "on the same stack the recorded algorithms are used") {
  CHECK(recorded().plan == plan);
  const ProfileStart same = start();
  CHECK(same.ready);
  CHECK(same.why.empty());
  CHECK(backend.calls == Calls{"use 512"});
}

TEST_CASE_FIXTURE(Fixture, "every binding field that differs is named") {
  backend.changeable_info().isa = "sm_80";
  backend.changeable_info().device->n_multiprocessors = 108;
  backend.changeable_info().device->runtime = "12.9";
  backend.cublaslt = "12.9.1";
  const ProfileStart other = start();
  CHECK_FALSE(other.ready);
  CHECK(other.why ==
        "the stack differs: products.architecture recorded 'sm_90', here 'sm_80', "
        "products.cublaslt recorded '13.1.0', here '12.9.1', products.cuda_runtime recorded "
        "'13.0', here '12.9', products.multiprocessors recorded '132', here '108'; replay on the "
        "recorded stack, or try it with --force");
  CHECK(backend.calls.empty());
}

TEST_CASE_FIXTURE(Fixture, "the name of the GPU and its driver do not bind") {
  backend.changeable_info().device->name = "another GPU";
  backend.changeable_info().device->driver = "13.2";
  remember();
  CHECK(start().ready);
}

TEST_CASE_FIXTURE(Fixture, "force tries the recorded algorithms on another GPU, and says so") {
  backend.changeable_info().device->n_multiprocessors = 108;
  remember();
  const ProfileStart forced = start(/*force=*/true);
  CHECK(forced.ready);
  CHECK(forced.why ==
        "forced past a differing stack (products.multiprocessors recorded '132', here '108')");
  CHECK(backend.calls == Calls{"use 512"});
}

TEST_CASE_FIXTURE(Fixture, "force with another cuBLASLt means other algorithms") {
  backend.cublaslt = "13.2.0";
  plan = backend.pin_products(512);
  remember();
  const ProfileStart forced = start(/*force=*/true);
  CHECK(forced.ready);
  CHECK(forced.why.find("with the algorithms that cuBLASLt chooses here") != std::string::npos);
  CHECK(backend.calls == Calls{"pin 512"});
}

TEST_CASE_FIXTURE(Fixture, "a plan of another cuBLASLt than its stack's is not used unforced") {
  ProductPlan other = plan;
  other.cublaslt = "9.9.9";
  fields[std::string(field::params_products)] = plan_to_json(other);
  const ProfileStart refused = start();
  CHECK_FALSE(refused.ready);
  CHECK(refused.why ==
        "the stack differs: params.products recorded cuBLASLt '9.9.9', here '13.1.0'; replay on "
        "the recorded stack, or try it with --force");
  CHECK(backend.calls.empty());
  const ProfileStart forced = start(/*force=*/true);
  CHECK(forced.ready);
  CHECK(forced.why == "with the algorithms that cuBLASLt chooses here");
}

TEST_CASE_FIXTURE(Fixture, "a plan for other rows than the run's chunk is refused") {
  const FieldMap good = fields;
  fields[std::string(field::params_chunk)] = std::int64_t{256};
  CHECK(why_not().find("is for 512 rows") != std::string::npos);
  fields = good;
  fields[std::string(field::params_ctx)] = std::int64_t{511};
  CHECK(why_not().find("is for 512 rows") != std::string::npos);
  fields.erase(std::string(field::params_ctx));
  CHECK(why_not().find("is for 512 rows") != std::string::npos);
}

TEST_CASE("products that are no matrices of the model are named") {
  const test::Scene scene;
  const auto file = ModelFile::open(scene.options.model_path);
  const TensorInfo* matrix = file->find_tensor("blk.0.ffn_down.weight");
  REQUIRE(matrix != nullptr);
  ProductPlan plan{"13.1.0", 8, 4096, {}};
  const auto n = static_cast<std::uint32_t>(matrix->n_rows());
  const auto k = static_cast<std::uint32_t>(matrix->row_elems());
  REQUIRE(n != k);
  plan.products = {{matrix->type, n, k, {}, ""}};
  CHECK(foreign_product(plan, *file).empty());
  plan.products[0].n = k + n;
  CHECK(foreign_product(plan, *file).find("which is no matrix of the model") != std::string::npos);
  plan.products[0] = {QType::kQ4_0, n, k, {}, ""};
  CHECK(foreign_product(plan, *file).find("Q4_0") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "without cuBLASLt nothing is decided, not even by force") {
  backend.cublaslt.clear();
  for (const bool force : {false, true}) {
    const ProfileStart none = start(force);
    CHECK_FALSE(none.ready);
    CHECK(none.why == "no cuBLASLt; replay the run on the stack that recorded it");
  }
}

TEST_CASE_FIXTURE(Fixture, "an algorithm that cuBLASLt refuses decides nothing") {
  backend.refusal = "the algorithm of F16 64 x 32 is refused";
  for (const bool force : {false, true}) {
    const ProfileStart refused = start(force);
    CHECK_FALSE(refused.ready);
    CHECK(refused.why.find("is refused") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(Fixture, "whatever a ledger lacks or invents is said, never used") {
  const FieldMap good = fields;
  fields[std::string(field::numerics_version)] = std::int64_t{2};
  CHECK(why_not().find("'cublas' version 2") != std::string::npos);
  fields = good;
  fields[std::string(field::numerics_profile)] = std::string("fast");
  CHECK(why_not().find("'fast' version 1") != std::string::npos);
  fields = good;
  fields.erase(std::string(field::params_products));
  CHECK(why_not().find("does not hold params.products") != std::string::npos);
  fields = good;
  fields[std::string(field::params_products)] = std::string("{}");
  CHECK(why_not() == "params.products: 'cublaslt' is missing");
  for (const std::string document : {"", "[]", "{\"binding\":1}", "{}"}) {
    fields = good;
    fields[std::string(field::stack_document)] = document;
    CHECK(why_not().find("the stack it is bound to") != std::string::npos);
  }
  fields.erase(std::string(field::stack_document));
  CHECK(why_not().find("the stack it is bound to") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a profile that the stack's binding does not name is refused") {
  const FieldMap good = fields;
  fields[std::string(field::numerics_profile)] = std::string(kPortable);
  CHECK(why_not() == "numerics.profile is 'portable', but the stack is bound to 'cublas'");
  fields[std::string(field::stack_document)] = collect_fingerprint(backend.info()).canonical();
  CHECK(why_not() == "recorded under the profile portable, but the ledger holds params.products");
  fields[std::string(field::numerics_profile)] = std::string(kCublas);
  CHECK(why_not() == "numerics.profile is 'cublas', but the stack is bound to 'portable'");
}

TEST_CASE_FIXTURE(Fixture, "a binding of the same values in another form is a difference") {
  std::string document = *field_text(fields, field::stack_document);
  const std::string number = "\"multiprocessors\":132";
  const std::size_t at = document.find(number);
  REQUIRE(at != std::string::npos);
  fields[std::string(field::stack_document)] =
      document.replace(at, number.size(), "\"multiprocessors\":\"132\"");
  CHECK(start().why.find("the same values in another form") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a binding of another shape is a difference") {
  fields[std::string(field::stack_document)] =
      std::string(R"({"binding":{"a":{"b":[1]},"numerics":{"profile":"cublas"}}})");
  const ProfileStart other = start();
  CHECK_FALSE(other.ready);
  CHECK(other.why.find("a.b recorded '[1]', here nothing") != std::string::npos);
  CHECK(other.why.find("products.architecture recorded nothing, here 'sm_90'") !=
        std::string::npos);
}

}  // namespace
}  // namespace detrun
