# SWIG modules share their types only where their SWIGs have the same version of
# the run time: 4 until SWIG 4.3, 5 from 4.4 on. With another one our classes
# would be none of FAISS's, which would be seen at the first import only.

function(faiss_bits_check_swig_runtime)
  set(wanted "${FAISS_BITS_PYTHON_FAISS_SWIG_RUNTIME}")
  if(NOT wanted)
    return()  # FAISS's module is not known here: the import checks
  endif()
  set(header "${CMAKE_CURRENT_BINARY_DIR}/swig_runtime.h")
  execute_process(
    COMMAND "${SWIG_EXECUTABLE}" -python -external-runtime "${header}"
    RESULT_VARIABLE result ERROR_VARIABLE error)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${SWIG_EXECUTABLE} failed: ${error}")
  endif()
  file(STRINGS "${header}" line REGEX "define SWIG_RUNTIME_VERSION")
  if(NOT line MATCHES "\"${wanted}\"")
    if(wanted EQUAL 4)
      set(versions "older than 4.4")
    else()
      set(versions "4.4 or newer")
    endif()
    message(FATAL_ERROR "The module of ${FAISS_BITS_PYTHON_FAISS_FOLDER} was made "
      "by a SWIG ${versions}; ${SWIG_EXECUTABLE} is ${SWIG_VERSION}. Install "
      "one that fits (from PyPI: swig) or set SWIG_EXECUTABLE.")
  endif()
endfunction()
