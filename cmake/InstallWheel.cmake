# What pip packs beside the files of faiss_bits/python: the libraries, in the
# package itself. Headers and CMake files are InstallFaissBits.cmake's.

set(faiss_bits_rpath "$ORIGIN")
if(FAISS_BITS_PYTHON_FAISS_LIBRARY)
  # A wheel beside a wheel: no path of this machine.
  list(APPEND faiss_bits_rpath "$ORIGIN/../faiss")
  if(FAISS_BITS_PYTHON_FAISS_OPENMP)
    get_filename_component(folder "${FAISS_BITS_PYTHON_FAISS_OPENMP}" DIRECTORY)
    get_filename_component(folder "${folder}" NAME)
    list(APPEND faiss_bits_rpath "$ORIGIN/../${folder}")
  endif()
endif()

foreach(library bits_kernels faiss_bits swigfaiss_bits)
  if(NOT TARGET ${library})
    continue()
  endif()
  if(FAISS_BITS_PYTHON_FAISS_LIBRARY)
    set_target_properties(${library} PROPERTIES
      INSTALL_RPATH "${faiss_bits_rpath}"
      INSTALL_RPATH_USE_LINK_PATH OFF)
  endif()
  if(NOT library STREQUAL "swigfaiss_bits")
    # What an older OpenMP runtime lacks is missed here, not at the import.
    target_link_options(${library} PRIVATE LINKER:-z,defs)
    install(TARGETS ${library}
      LIBRARY DESTINATION faiss_bits COMPONENT python)
  endif()
endforeach()
