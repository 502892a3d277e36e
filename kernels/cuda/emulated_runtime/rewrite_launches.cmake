# cmake -DINPUT=x.cu -DOUTPUT=x.cpp -P rewrite_launches.cmake: the launchers of a kernel file as C++
# for the host emulation. kernel<<<configuration>>>( becomes EmulatedLaunch(configuration).of(kernel)(.
file(READ ${INPUT} text)
string(REGEX REPLACE "([A-Za-z0-9_]+(<[A-Za-z0-9_, ]*>)?(\\[[a-z]+\\])?)<<<([^>]*)>>>\\("
       "::detrun::emulation::EmulatedLaunch(\\4).of(\\1)(" text "${text}")
string(FIND "${text}" "<<<" left)
if(NOT left EQUAL -1)
  message(FATAL_ERROR "${INPUT}: a launch that kernels/cuda/emulated_runtime/rewrite_launches.cmake cannot read")
endif()
file(WRITE ${OUTPUT} "#line 1 \"${INPUT}\"\n${text}")
