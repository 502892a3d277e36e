# Checks of what nvcc made of the kernels, as text: PTX, machine code, registers. Python 3 is looked
# up when the tests run; what else is missing makes them skip, with a line that says so.
foreach(check ptx sass resources)
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/check_${check}.py)
  add_test(NAME cuda_${check} COMMAND python3 ${script} --build ${CMAKE_BINARY_DIR})
  add_test(NAME cuda_${check}_self_test
           COMMAND python3 ${script} --build ${CMAKE_BINARY_DIR} --self-test)
  set(tier quick)
  if(check STREQUAL sass)
    set(tier full)  # half a minute
  endif()
  set_tests_properties(cuda_${check} cuda_${check}_self_test PROPERTIES
    LABELS "${tier};cuda;no-sanitizer" SKIP_RETURN_CODE 77 TIMEOUT 300)
endforeach()
