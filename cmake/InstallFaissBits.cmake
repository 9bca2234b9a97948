# Installs libraries, headers and the files behind find_package(faiss_bits).
#
# Headers name each other from the root of the tree ("kernels/select/Select.h",
# "faiss_bits/common/FaissCompat.h"), so both folders go, as they are, under one
# versioned folder, and that folder is what a consumer has on its include path:
#   <prefix>/include/faiss_bits-0.1/{faiss_bits,kernels}/...

include(CMakePackageConfigHelpers)

set(faiss_bits_include_dir "${CMAKE_INSTALL_INCLUDEDIR}/\
faiss_bits-${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(faiss_bits_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/faiss_bits")

set(faiss_bits_libraries "")
foreach(library bits_kernels faiss_bits)
  if(TARGET ${library})
    list(APPEND faiss_bits_libraries ${library})
  endif()
endforeach()
if(NOT faiss_bits_libraries)
  return()
endif()

foreach(library IN LISTS faiss_bits_libraries)
  # What consumers need: the headers are C++17, as FAISS's are.
  target_compile_features(${library} PUBLIC cxx_std_17)
  target_include_directories(${library} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:${faiss_bits_include_dir}>")
  set_target_properties(${library} PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  install(TARGETS ${library} EXPORT faiss_bits-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()

# What nobody includes: inner parts; the drop-in library, which is linked or
# loaded; and, without the GPU part, what needs CUDA.
set(faiss_bits_excluded "")
foreach(pattern python dropin CallStream.h ClonedRefine.h ClusteringRun.h EmptyClusters.h EventPool.h FaissMetric.h RandomRows.h WhenEnqueued.h
    SearchTimer.h TrainingVectors.h GpuStaging.h LastPlans.h PagedCall.h PagePlan.h PinnedMemory.h RangeArguments.h IvfRangeArguments.h ProbedLists.h CopyableIndex.h Interrupt.h Waiting.h
    Centroids.h FlatChecks.h FlatLastPlan.h FlatStorage.h GpuSearchCounters.h SearchFilter.h SearchWithin.h SelectorBits.h
    SelectorTree.h VectorFacts.h VectorKernels.h
    PlanLog.h PlanText.h SearchReport.h CoarseSearch.h IvfChecks.h IvfIndexSearch.h
    IvfIndexVectors.h IvfLastPlan.h IvfSearch.h ListStorage.h FaissLists.h FilteredLists.h IdsOfLists.h IvfLimits.h ListFilter.h
    ListRemoval.h ListsBefore.h OurIvf.h EmptyIvf.h RangeCall.h RangeMoves.h RangePieces.h RangeResults.h AllowedPlaces.h FusedIvfSearch.h DistanceArguments.h
    GpuMetricRun.h GpuMetricState.h FoundRanges.h MetricContents.h MetricOptions.h
    MetricParts.h MetricShardSet.h StagedRange.h WordsOnGpu.h
    HostParts.h HostShards.h DeviceCopies.h GroupSpeeds.h ManyCalls.h ManyDevices.h Worker.h
    ManyMemory.h ManyRange.h PartFilters.h PartSet.h PeerAccess.h PeerCopy.h ReplicaSlices.h SampleSize.h ShardBatch.h ShardMap.h ShardSample.h
    ShardSet.h SlicedSearch.h)
  list(APPEND faiss_bits_excluded PATTERN ${pattern} EXCLUDE)
endforeach()
if(NOT FAISS_BITS_ENABLE_GPU)
  list(APPEND faiss_bits_excluded PATTERN select EXCLUDE PATTERN "Gpu*" EXCLUDE
    PATTERN DeviceSelector.h EXCLUDE PATTERN many EXCLUDE
    PATTERN "SearchParametersBits*.h" EXCLUDE)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/faiss_bits"
  DESTINATION ${faiss_bits_include_dir}
  FILES_MATCHING PATTERN "*.h"
  ${faiss_bits_excluded})
if(FAISS_BITS_ENABLE_GPU)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/kernels"
    DESTINATION ${faiss_bits_include_dir}
    FILES_MATCHING PATTERN "*.h"
    # Which cuBLASLt is called: sources alone ask.
    PATTERN "*CublasLt*.h" EXCLUDE
    # Inner headers that read a list in a file beside them, and who names them.
    PATTERN SelectTable.h EXCLUDE
    PATTERN "*Policy.h" EXCLUDE
    PATTERN ThresholdPlan.h EXCLUDE
    PATTERN CombPlan.h EXCLUDE
    PATTERN HeldPlan.h EXCLUDE
    PATTERN WholeRowsPlan.h EXCLUDE
    PATTERN words EXCLUDE
    PATTERN cpu EXCLUDE)
endif()
# What the headers of faiss_bits/ name; bits_cpu and bits_words themselves are
# inside libfaiss_bits.
install(FILES
  "${PROJECT_SOURCE_DIR}/kernels/cpu/Choice.h"
  "${PROJECT_SOURCE_DIR}/kernels/cpu/Knn.h"
  "${PROJECT_SOURCE_DIR}/kernels/cpu/Machine.h"
  "${PROJECT_SOURCE_DIR}/kernels/cpu/Plan.h"
  "${PROJECT_SOURCE_DIR}/kernels/cpu/Problem.h"
  "${PROJECT_SOURCE_DIR}/kernels/cpu/Range.h"
  "${PROJECT_SOURCE_DIR}/kernels/cpu/Targets.h"
  DESTINATION ${faiss_bits_include_dir}/kernels/cpu)
install(FILES
  "${PROJECT_SOURCE_DIR}/kernels/words/WordRange.h"
  DESTINATION ${faiss_bits_include_dir}/kernels/words)
install(FILES
  "${PROJECT_SOURCE_DIR}/kernels/common/Error.h"
  "${PROJECT_SOURCE_DIR}/kernels/common/SearchMode.h"
  "${PROJECT_SOURCE_DIR}/kernels/common/Types.h"
  DESTINATION ${faiss_bits_include_dir}/kernels/common)

install(EXPORT faiss_bits-targets
  NAMESPACE faiss_bits::
  DESTINATION ${faiss_bits_cmake_dir})
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/faiss_bits-config.cmake.in"
  "${PROJECT_BINARY_DIR}/cmake/faiss_bits-config.cmake"
  INSTALL_DESTINATION ${faiss_bits_cmake_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/cmake/faiss_bits-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/cmake/faiss_bits-config.cmake"
  "${PROJECT_BINARY_DIR}/cmake/faiss_bits-config-version.cmake"
  DESTINATION ${faiss_bits_cmake_dir})
