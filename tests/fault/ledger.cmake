# Faults under the ledger: killed writers, a full disk, damaged files.
detrun_test(fault_ledger
  SOURCES ledger_kill_test.cpp ledger_full_test.cpp ledger_damage_test.cpp
  LINK detrun_ledger PkgConfig::SQLITE LABELS full)
target_include_directories(test_fault_ledger PRIVATE ${PROJECT_SOURCE_DIR}/tests)
