# FAISS_BITS_SANITIZE: checkers compiled into our own code (not into FAISS).
# compute-sanitizer needs nothing of this: see the preset "sanitize".

if(FAISS_BITS_SANITIZE STREQUAL "address")
  # With undefined behaviour: the two go together and find different things.
  set(faiss_bits_sanitize -fsanitize=address,undefined
    -fno-sanitize-recover=all)
elseif(FAISS_BITS_SANITIZE STREQUAL "thread")
  # libgomp tells the sanitizer nothing of its barriers, so that every loop
  # looks like a race; Clang's libomp does, through Archer.
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR
      "FAISS_BITS_SANITIZE=thread needs Clang and its OpenMP (Debian: clang "
      "libomp-dev); CMAKE_CXX_COMPILER is ${CMAKE_CXX_COMPILER}")
  endif()
  set(faiss_bits_sanitize -fsanitize=thread)
elseif(FAISS_BITS_SANITIZE)
  message(FATAL_ERROR
    "FAISS_BITS_SANITIZE is '${FAISS_BITS_SANITIZE}': not address or thread")
endif()

if(FAISS_BITS_SANITIZE)
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:${faiss_bits_sanitize};-fno-omit-frame-pointer;-g>")
  add_link_options(${faiss_bits_sanitize})
endif()
