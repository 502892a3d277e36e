// `detrun fingerprint`: the stack document as canonical JSON, on one line unless --pretty.
#include <memory>

#include "cli/options.h"
#include "detrun/run.h"

namespace detrun::cli {
namespace {

struct FingerprintArguments {
  EngineOptions engine;
  bool pretty = false;
};

ExitCode run_fingerprint(const FingerprintArguments& arguments, Session& session) {
  const Json document = fingerprint(arguments.engine);
  session.console.write((arguments.pretty ? document.dump(2) : document.canonical()) + "\n");
  return ExitCode::kOk;
}

}  // namespace

Runner build_fingerprint(CLI::App& app) {
  auto arguments = std::make_shared<FingerprintArguments>();
  add_engine_options(app, arguments->engine);
  add_switch(app, {"--pretty", "", "Output", "indented, for reading"}, arguments->pretty);
  return [arguments](Session& session) { return run_fingerprint(*arguments, session); };
}

}  // namespace detrun::cli
