# Which CUDA libraries our GPU part is linked with.
#
# FAISS and we use one CUDA runtime and one cuBLASLt where the compiler is of the
# release that FAISS is linked with. Beside a FAISS of another one (the official
# wheel has CUDA 12, and the compiler may be of CUDA 13) each of our libraries
# holds a runtime of its own, linked statically and hidden; streams, events and
# memory are the driver's, and mean the same to both. Products go to the cuBLASLt
# that FAISS has loaded, as its handles are made by that one.
#
# in   FAISS_BITS_OTHER_CUDA  AUTO, ON or OFF: is FAISS's CUDA another one?
#      FAISS_BITS_PYTHON_FAISS_CUDA (PythonFaiss.cmake), CUDAToolkit_VERSION_MAJOR
# out  FAISS_BITS_OWN_CUDA_RUNTIME     TRUE or FALSE
#      FAISS_BITS_CUBLASLT             then the cuBLASLt to look for at run time
#      faiss_bits_link_cuda(<target>)  a shared library of ours with CUDA

set(FAISS_BITS_OTHER_CUDA AUTO CACHE STRING
  "FAISS is linked with another CUDA than the compiler's: AUTO, ON or OFF")
set_property(CACHE FAISS_BITS_OTHER_CUDA PROPERTY STRINGS AUTO ON OFF)

set(FAISS_BITS_OWN_CUDA_RUNTIME FALSE)
set(FAISS_BITS_CUBLASLT "")
if(FAISS_BITS_CUDA_COMPILER)
  set(faiss_bits_cuda "${FAISS_BITS_PYTHON_FAISS_CUDA}")
  if(NOT faiss_bits_cuda)
    set(faiss_bits_cuda "${CUDAToolkit_VERSION_MAJOR}")
  endif()
  if(FAISS_BITS_OTHER_CUDA STREQUAL "AUTO")
    if(NOT faiss_bits_cuda EQUAL CUDAToolkit_VERSION_MAJOR)
      set(FAISS_BITS_OWN_CUDA_RUNTIME TRUE)
    endif()
  elseif(FAISS_BITS_OTHER_CUDA)
    set(FAISS_BITS_OWN_CUDA_RUNTIME TRUE)
  endif()
  if(FAISS_BITS_OWN_CUDA_RUNTIME)
    set(FAISS_BITS_CUBLASLT "libcublasLt.so.${faiss_bits_cuda}")
    message(STATUS "FAISS has CUDA ${faiss_bits_cuda}, the compiler "
      "${CUDAToolkit_VERSION}: our libraries hold a runtime of their own and "
      "look for ${FAISS_BITS_CUBLASLT}")
  endif()
endif()

function(faiss_bits_link_cuda target)
  if(NOT FAISS_BITS_OWN_CUDA_RUNTIME)
    target_link_libraries(${target} PUBLIC CUDA::cudart CUDA::cublas)
    return()
  endif()
  # Of cuBLAS the headers alone, which those of FAISS include.
  target_include_directories(${target} SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
  target_link_libraries(${target} PRIVATE CUDA::cudart_static)
  # FAISS and torch must never find this runtime in place of their own.
  target_link_options(${target} PRIVATE
    LINKER:--exclude-libs,libcudart_static.a
    # An inline function that several libraries have makes its CUDA calls, and
    # takes their errors back, in the runtime of the library that called it.
    LINKER:-Bsymbolic-functions)
endfunction()
