# Run by ctest; see CMakeLists.txt for the variables.

function(run)
    execute_process(COMMAND ${ARGN}
        RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${command}\nended with ${result}:\n${output}")
    endif()
    set(output "${output}" PARENT_SCOPE)
endfunction()

# From nothing, so that a file that is no longer installed is missed.
file(REMOVE_RECURSE "${WORK_DIR}/prefix" "${WORK_DIR}/build" "${WORK_DIR}/app"
    "${WORK_DIR}/other")
run(${CMAKE_COMMAND} --install "${BUILD_DIR}" --prefix "${WORK_DIR}/prefix")

# A FAISS built from source by this project is installed along with it.
set(hints "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix")
if(faiss_DIR)
    list(APPEND hints "-Dfaiss_DIR=${faiss_DIR}")
endif()
if(CUDA_ROOT)
    list(APPEND hints "-DCUDAToolkit_ROOT=${CUDA_ROOT}")
endif()
set(configure ${CMAKE_COMMAND} -S "${SOURCE_DIR}" -G "${GENERATOR}"
    -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_BUILD_TYPE=${CONFIG} ${hints})

# Beside another FAISS it is not found, and says which one it was built with.
set(other "${WORK_DIR}/other")
file(WRITE "${other}/faiss/Index.h" "#define FAISS_VERSION_MAJOR 9\n"
    "#define FAISS_VERSION_MINOR 8\n#define FAISS_VERSION_PATCH 7\n")
file(WRITE "${other}/faiss-config.cmake" "add_library(faiss INTERFACE IMPORTED)\n"
    "target_include_directories(faiss INTERFACE \"${other}\")\n")
execute_process(COMMAND ${configure} -B "${other}/build" "-Dfaiss_DIR=${other}"
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
if(result EQUAL 0 OR NOT output MATCHES "built with FAISS .*found is '9.8.7'")
    message(FATAL_ERROR "With FAISS 9.8.7: ${result}, ${output}")
endif()

run(${configure} -B "${WORK_DIR}/build")
run(${CMAKE_COMMAND} --build "${WORK_DIR}/build")
run(${CMAKE_COMMAND} --install "${WORK_DIR}/build" --prefix "${WORK_DIR}/app")
run("${WORK_DIR}/app/bin/consumer")

message(STATUS "${output}")
if(EXPECT_GPU AND NOT output MATCHES "GPU part: yes")
    message(FATAL_ERROR "The installed library has no GPU part:\n${output}")
endif()

# Linked with the drop-in library, a FAISS program finds its selection replaced.
if(EXPECT_GPU)
    set(ENV{FAISS_BITS_DROPIN} log)
    run("${WORK_DIR}/app/bin/consumer_dropin")
    message(STATUS "${output}")
    if(NOT output MATCHES "are replaced")
        message(FATAL_ERROR "The drop-in library replaces nothing:\n${output}")
    endif()
endif()
