# Decides whether the GPU part is built.
#
# in   FAISS_BITS_GPU, FAISS_BITS_CUDA_COMPILER, FAISS_BITS_FAISS_HAS_GPU,
#      FAISS_BITS_PYTHON_FAISS_CUDA (PythonFaiss.cmake)
# out  FAISS_BITS_ENABLE_GPU (ON or OFF)

set(faiss_bits_missing "")
if(NOT FAISS_BITS_CUDA_COMPILER)
  list(APPEND faiss_bits_missing
    "a CUDA compiler (nvcc on PATH, CUDACXX or CMAKE_CUDA_COMPILER)")
endif()
if(NOT FAISS_BITS_FAISS_HAS_GPU)
  list(APPEND faiss_bits_missing
    "a FAISS with GPU support (${faiss_bits_faiss_origin} has none)")
endif()
if(FAISS_BITS_CUDA_COMPILER AND FAISS_BITS_PYTHON_FAISS_CUDA AND NOT
    FAISS_BITS_PYTHON_FAISS_CUDA EQUAL CUDAToolkit_VERSION_MAJOR AND NOT
    FAISS_BITS_OWN_CUDA_RUNTIME)
  # FAISS_BITS_OTHER_CUDA=OFF: we would be linked with two versions of each.
  list(APPEND faiss_bits_missing "CUDA ${FAISS_BITS_PYTHON_FAISS_CUDA}, which the \
wheel ${FAISS_BITS_PYTHON_FAISS_DISTRIBUTION} is linked with \
(${CMAKE_CUDA_COMPILER} is ${CUDAToolkit_VERSION})")
endif()
list(JOIN faiss_bits_missing " and " faiss_bits_missing)

set(FAISS_BITS_ENABLE_GPU OFF)
if(NOT FAISS_BITS_GPU)
  message(STATUS "faiss_bits: CPU part alone, as asked (FAISS_BITS_GPU=OFF)")
elseif(NOT faiss_bits_missing)
  set(FAISS_BITS_ENABLE_GPU ON)
  message(STATUS "faiss_bits: CPU and GPU parts, CUDA "
    "${CUDAToolkit_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
elseif(FAISS_BITS_GPU STREQUAL "AUTO")
  message(STATUS
    "faiss_bits: CPU part alone; the GPU part needs ${faiss_bits_missing}")
else()
  message(FATAL_ERROR "FAISS_BITS_GPU=ON needs ${faiss_bits_missing}.")
endif()
