// The program: one command, one exit code. The only catch and the only exit of detrun are here;
// whatever ends a command below arrives as Error.
#include <cstddef>
#include <exception>
#include <new>
#include <span>

#include "cli/cli.h"
#include "cli/output.h"
#include "detrun/error.h"

int main(int argc, char** argv) {
  using detrun::ExitCode;
  detrun::cli::prepare_process();
  detrun::cli::Console console;
  ExitCode code = ExitCode::kInternal;
  try {
    const auto n_words = static_cast<std::size_t>(argc > 0 ? argc - 1 : 0);
    const std::span<const char* const> words(argv + (argc > 0 ? 1 : 0), n_words);
    code = detrun::cli::run_command_line(words, console);
  } catch (const detrun::Error& error) {
    code = error.kind();
    console.report(error.what(), error.hint());
  } catch (const std::bad_alloc&) {
    console.note("detrun: error: out of memory\n");
  } catch (const std::exception& error) {
    console.report(std::string("internal error: ") + error.what(), "this is a bug of detrun");
  }
  return static_cast<int>(code);
}
