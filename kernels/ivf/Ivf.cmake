# bits_ivf: searches of inverted lists, for bits_kernels and for the drop-in library.
# Included by kernels/CMakeLists.txt, whose folder paths are of.

# Instances: of a metric and a coding.
set(other_instances "${instances}")
set(instances "")
foreach(metric L2 InnerProduct)
  add_instance("kernels/ivf/IvfBoundedLaunch.cuh" "ivf_bounded_${metric}"
    "launchIvfProductScan<Metric::${metric}>(const IvfDirectParams&, int, cudaStream_t)")
  add_instance("kernels/ivf/IvfBookLaunch.cuh" "ivf_book_${metric}"
    "launchIvfBookScan<Metric::${metric}>(const IvfDirectParams&, int, cudaStream_t)")
  add_instance("kernels/ivf/IvfCodeFloors.cuh" "ivf_code_floors_${metric}"
    "launchIvfCodeFloors<Metric::${metric}>(const IvfDirectParams&, int, cudaStream_t)")
  add_instance("kernels/ivf/IvfTableLaunch.cuh" "ivf_table_${metric}"
    "launchIvfTableScan<Metric::${metric}>(const IvfDirectParams&, const DeviceTraits&, cudaStream_t)")
  foreach(coding Float32 Float16 Scalar8 Scalar6 Scalar4 Product)
    set(kernel "Metric::${metric}, ListCoding::${coding}")
    add_instance("kernels/ivf/IvfLaunch.cuh" "ivf_${metric}_${coding}"
      "launchIvfTiles<${kernel}>(const IvfParams&, bool, int, cudaStream_t)"
      "launchIvfStreams<${kernel}>(const IvfParams&, idx_t, cudaStream_t)")
    add_instance("kernels/ivf/IvfDirectLaunch.cuh" "ivf_direct_${metric}_${coding}"
      "launchIvfDirectScan<${kernel}>(const IvfDirectParams&, int, cudaStream_t)"
      "launchIvfSharedScan<${kernel}>(const IvfDirectParams&, int, cudaStream_t)"
      "launchIvfStagedScan<${kernel}>(const IvfDirectParams&, const DeviceTraits&, cudaStream_t)"
      "launchIvfStagedSharedScan<${kernel}>(const IvfDirectParams&, const DeviceTraits&, cudaStream_t)")
    add_instance("kernels/ivf/IvfEstimatesLaunch.cuh" "ivf_estimates_${metric}_${coding}"
      "launchIvfEstimates<${kernel}>(const IvfParams&, bool, int, cudaStream_t)")
    if(coding MATCHES "Float32|Scalar8|Product") # hasIvfFewEstimates()
      add_instance("kernels/ivf/IvfFewEstimatesLaunch.cuh" "ivf_few_estimates_${metric}_${coding}"
        "launchIvfFewEstimates<${kernel}>(const IvfParams&, int, int, cudaStream_t)")
      add_instance("kernels/ivf/IvfRowResults.cuh" "ivf_row_results_${metric}_${coding}"
        "launchIvfRowResults<${kernel}>(const IvfResultParams&, cudaStream_t)")
    endif()
    if(coding MATCHES "Float32|Scalar8") # hasIvfListCandidates()
      add_instance("kernels/ivf/IvfListCandidatesLaunch.cuh" "ivf_list_candidates_${metric}_${coding}"
        "launchIvfListCandidates<${kernel}>(const IvfListCandidatesParams&, size_t, int, cudaStream_t)")
    endif()
    add_instance("kernels/ivf/IvfRescoreLaunch.cuh" "ivf_rescore_${metric}_${coding}"
      "launchIvfRescore<${kernel}>(IvfRescoreParams, size_t, int, cudaStream_t)")
  endforeach()
endforeach()

add_library(bits_ivf OBJECT
  common/HostWord.cu
  ivf/IvfAgain.cpp
  ivf/IvfAgain.cu
  ivf/IvfBoundedFinish.cu
  ivf/IvfCandidates.cu
  ivf/IvfChoice.cu
  ivf/IvfDirect.cpp
  ivf/IvfDirectPlan.cpp
  ivf/IvfDirectTimes.cpp
  ivf/IvfDirectFinish.cu
  ivf/IvfDirectLists.cu
  ivf/IvfDistances.cpp
  ivf/IvfFewEstimates.cpp
  ivf/IvfFewResults.cu
  ivf/IvfFilterBits.cu
  ivf/IvfFloorsFinish.cu
  ivf/IvfFind.cu
  ivf/IvfFoundResults.cu
  ivf/IvfKnn.cpp
  ivf/IvfKnnChecks.cpp
  ivf/IvfListCandidates.cpp
  ivf/IvfPlan.cpp
  ivf/IvfPairs.cu
  ivf/IvfRange.cpp
  ivf/IvfRangeFound.cpp
  ivf/IvfRangeResults.cu
  ivf/IvfRemoval.cu
  ivf/IvfResults.cu
  ivf/IvfScratch.cpp
  ivf/IvfSelectedCopy.cu
  ivf/IvfTableTerms.cu
  ivf/IvfTimes.cpp
  ${instances})
target_include_directories(bits_ivf SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_compile_options(bits_ivf PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:-Xfatbin=-compress-all>)
set(instances "${other_instances}")
