# Warnings for our own folders. Generated code (SWIG) turns them off with -w.

set(faiss_bits_host_warnings -Wall -Wextra)
if(FAISS_BITS_WERROR)
  list(APPEND faiss_bits_host_warnings -Werror)
endif()
list(JOIN faiss_bits_host_warnings "," faiss_bits_host_warnings_list)

add_compile_options(
  "$<$<COMPILE_LANGUAGE:CXX>:${faiss_bits_host_warnings}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${faiss_bits_host_warnings_list}>")
if(FAISS_BITS_WERROR)
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
endif()
if(FAISS_BITS_LINEINFO)
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>")
endif()
