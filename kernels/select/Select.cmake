# bits_select: the selection, for bits_kernels and for the drop-in library.
# Included by kernels/CMakeLists.txt, whose folder paths are of.

# Key types, and items of 256 threads that hold the list of the best.
# kernels/select/bits/BitsLaunch.h says what the names mean.
set(select_header "kernels/select/bits/BitsLaunch.cuh")
set(select_arguments "const SelectParams&, unsigned, cudaStream_t")
read_policies(select/bits/Policies.inc BITS_ITEMS policies)
foreach(policy IN LISTS policies)
  string(REGEX MATCH "^[0-9]+" items "${policy}")
  foreach(keys FloatKeys HalfKeys BFloat16Keys BiasedKeys
      FloatCandidates HalfCandidates BFloat16Candidates)
    add_instance(${select_header} "bits_${keys}_${items}"
      "launchBitsSelect<${keys}, ${items}>(${select_arguments})")
  endforeach()
endforeach()
foreach(keys FloatKeys HalfKeys BFloat16Keys BiasedKeys)
  add_instance("kernels/select/bits/BestLaunch.cuh" "best_${keys}"
    "launchBestSelect<${keys}>(${select_arguments})"
    "launchBestOfParts<${keys}>(${select_arguments})")
endforeach()

# The threshold from a sample: threads and sorted entries of the blocks that do a
# row each, and of those that finish the rows of split ones.
set(threshold_header "kernels/select/threshold/ThresholdLaunch.cuh")
set(threshold_arguments "const ThresholdParams&, unsigned, cudaStream_t")
read_policies(select/threshold/Policies.inc BITS_WHOLE_ROWS whole_policies)
read_policies(select/threshold/Policies.inc BITS_CLUSTER_ROWS cluster_policies)
read_policies(select/threshold/Policies.inc BITS_COMB_ROWS comb_policies)
read_policies(select/threshold/Policies.inc BITS_HELD_ROWS held_policies)
read_policies(select/threshold/Policies.inc BITS_FINISH_ROWS finish_policies)
# "threads, room, mostK" to what names the kernel.
list(TRANSFORM whole_policies REPLACE "^([0-9]+, [0-9]+), [0-9]+$" "\\1")
list(TRANSFORM cluster_policies REPLACE "^([0-9]+, [0-9]+), [0-9]+$" "\\1")
list(TRANSFORM comb_policies REPLACE "^([0-9]+, [0-9]+), [0-9]+$" "\\1")
list(TRANSFORM held_policies REPLACE "^([0-9]+, [0-9]+), [0-9]+$" "\\1")
list(TRANSFORM finish_policies REPLACE "^([0-9]+, [0-9]+), [0-9]+$" "\\1")
foreach(keys FloatKeys HalfKeys BFloat16Keys BiasedKeys)
  set(all_threads "")
  foreach(policy IN LISTS whole_policies)
    string(REGEX MATCH "^[0-9]+" threads "${policy}")
    list(APPEND all_threads ${threads})
    list(APPEND signatures_${threads}
      "launchWholeRows<${keys}, ${policy}>(${threshold_arguments})")
  endforeach()
  list(REMOVE_DUPLICATES all_threads)
  foreach(threads IN LISTS all_threads)
    add_instance(${threshold_header} "rows_${keys}_${threads}"
      ${signatures_${threads}})
    unset(signatures_${threads})
  endforeach()
  set(signatures
    "launchSampleLimit<${keys}>(${threshold_arguments})"
    "launchSplitRows<${keys}>(${threshold_arguments})"
    "launchRowsAgain<${keys}>(const RowsAgainParams&, unsigned, cudaStream_t)")
  foreach(policy IN LISTS finish_policies)
    list(APPEND signatures
      "launchFinishRows<${keys}, ${policy}>(${threshold_arguments})")
  endforeach()
  add_instance(${threshold_header} "split_${keys}" ${signatures})
  if(NOT keys STREQUAL BiasedKeys)
    set(signatures "")
    foreach(policy IN LISTS cluster_policies)
      list(APPEND signatures
        "launchClusterRows<${keys}, ${policy}>(${threshold_arguments})")
    endforeach()
    add_instance("kernels/select/threshold/ClusterLaunch.cuh"
      "cluster_${keys}" ${signatures})
    set(signatures "")
    foreach(policy IN LISTS comb_policies)
      list(APPEND signatures
        "launchCombRows<${keys}, ${policy}>(${threshold_arguments})")
    endforeach()
    add_instance("kernels/select/threshold/CombLaunch.cuh"
      "comb_${keys}" ${signatures})
    set(signatures "")
    foreach(policy IN LISTS held_policies)
      list(APPEND signatures
        "launchHeldRows<${keys}, ${policy}>(${threshold_arguments})")
    endforeach()
    add_instance("kernels/select/threshold/HeldLaunch.cuh"
      "held_${keys}" ${signatures})
  endif()
endforeach()

# Short rows: keys and bias, lanes, items, sorted entries.
read_policies(select/short_rows/Policies.inc BITS_SHORT_ROWS short_policies)
read_policies(select/short_rows/Policies.inc BITS_FEW_SHORT_ROWS few_short_policies)
foreach(keys "float, true" "float, false" "__half, false" "__nv_bfloat16, false")
  string(REGEX REPLACE "[^a-z0-9]+" "_" name "${keys}")
  set(signatures "")
  foreach(policy IN LISTS short_policies few_short_policies)
    string(REGEX REPLACE "^([0-9]+, [0-9]+, [0-9]+), .*$" "\\1" shape "${policy}")
    list(APPEND signatures
      "launchShortRows<${keys}, ${shape}>(const ShortRowsParams&, cudaStream_t)")
  endforeach()
  list(REMOVE_DUPLICATES signatures)
  add_instance("kernels/select/short_rows/ShortRowsLaunch.cuh"
    "short_${name}" ${signatures})
  add_instance("kernels/select/short_rows/LeastOfRowsLaunch.cuh"
    "least_${name}"
    "launchLeastOfRows<${keys}>(const ShortRowsParams&, bool, cudaStream_t)")
endforeach()

foreach(type float __half __nv_bfloat16)
  add_instance("kernels/select/short_rows/LaneListsLaunch.cuh"
    "lane_lists_${type}"
    "launchLaneLists<${type}>(const ShortRowsParams&, LaneListsShape, cudaStream_t)")
endforeach()

# A few of the best of rows: keys of a lane, numbers of it (FewOfLanesPlan.cpp).
foreach(type float __half __nv_bfloat16)
  set(items_of_lane 32 64)
  set(numbers_of_lane 1 2)
  if(type STREQUAL "float")
    set(items_of_lane 24 32 48 64)
    set(numbers_of_lane 1 2 4)
  endif()
  set(signatures "")
  foreach(items IN LISTS items_of_lane)
    foreach(numbers IN LISTS numbers_of_lane)
      list(APPEND signatures
        "launchFewOfLanes<${type}, ${items}, ${numbers}>(const ShortRowsParams&, cudaStream_t)")
    endforeach()
  endforeach()
  add_instance("kernels/select/short_rows/FewOfLanesLaunch.cuh"
    "few_of_lanes_${type}" ${signatures})
endforeach()

# The same of shorter rows: lanes, packs of a lane, numbers of it.
read_policies(select/short_rows/FewOfPacks.inc BITS_FEW_OF_PACKS pack_shapes)
foreach(numbers 1 2 4)
  set(signatures "")
  foreach(shape IN LISTS pack_shapes)
    if(shape MATCHES ", ${numbers}$")
      list(APPEND signatures
        "launchFewOfPacks<${shape}>(const ShortRowsParams&, cudaStream_t)")
    endif()
  endforeach()
  add_instance("kernels/select/short_rows/FewOfPacksLaunch.cuh"
    "few_of_packs_${numbers}" ${signatures})
endforeach()

# The same of rows that a block holds: keys of a thread (FewOfBlockPlan.cpp).
set(signatures "")
foreach(items 32 40 48 64)
  list(APPEND signatures
    "launchFewOfBlock<${items}>(const ShortRowsParams&, cudaStream_t)")
endforeach()
add_instance("kernels/select/short_rows/FewOfBlockLaunch.cuh" "few_of_block"
  ${signatures})

# Rows of 16-bit keys in pairs: numbers of a lane (NarrowChunksPlan.cpp).
foreach(type __half __nv_bfloat16)
  set(signatures "")
  foreach(sorted 8 16)
    list(APPEND signatures
      "launchNarrowChunks<${type}, ${sorted}>(const ShortRowsParams&, cudaStream_t)")
  endforeach()
  add_instance("kernels/select/short_rows/NarrowChunksLaunch.cuh"
    "narrow_chunks_${type}" ${signatures})
endforeach()

# Lists of entries to results, by one block a row; T of the keys.
foreach(type float __half __nv_bfloat16)
  add_instance("kernels/survivors/FinishLaunch.cuh" "finish_${type}"
    "launchFinishLists<${type}>(const FinishParams&, unsigned, cudaStream_t)")
endforeach()

set(multipass_header "kernels/select/large_k/MultiPassLaunch.cuh")
foreach(keys Float Half BFloat16 Biased)
  add_instance(${multipass_header} "multipass_${keys}"
    "getMultiPassLaunches<MultiPass${keys}>(MultiPassLaunches&)")
endforeach()

# Rows that one block sorts: threads, items.
read_policies(select/large_k/RowSortPolicies.inc BITS_ROW_SORT row_sorts)
read_policies(select/large_k/RowSortPolicies.inc BITS_ROW_SORT_NARROW narrow_row_sorts)
set(row_sort_arguments "const SelectParams&, unsigned, size_t, cudaStream_t")
foreach(keys Float Half BFloat16 Biased)
  set(policies ${row_sorts})
  if(keys MATCHES "^(Half|BFloat16)$")
    list(APPEND policies ${narrow_row_sorts})
  endif()
  set(signatures "")
  foreach(policy IN LISTS policies)
    list(APPEND signatures
      "launchRowSort<MultiPass${keys}, ${policy}>(${row_sort_arguments})")
  endforeach()
  add_instance("kernels/select/large_k/RowSortLaunch.cuh" "row_sort_${keys}"
    ${signatures})
endforeach()

add_library(bits_select OBJECT
  common/ContextId.cpp
  common/DependentLaunch.cpp
  common/KernelLaunch.cpp
  common/LaunchesTogether.cpp
  common/DeviceTraits.cpp
  common/DynamicShared.cpp
  select/bits/BitsSelect.cpp
  select/SelectChecks.cpp
  select/SelectCost.cpp
  select/SelectDispatch.cpp
  select/bits/BitsPlan.cpp
  select/short_rows/FewOfBlockPlan.cpp
  select/short_rows/FewOfLanesPlan.cpp
  select/short_rows/FewOfPacksPlan.cpp
  select/short_rows/NarrowChunksPlan.cpp
  select/short_rows/ShortRowsSelect.cpp
  select/threshold/CombPlan.cpp
  select/threshold/HeldPlan.cpp
  select/threshold/SampleChoice.cpp
  select/threshold/SecondSample.cpp
  select/threshold/ThresholdPlan.cpp
  select/threshold/ThresholdSelect.cpp
  select/threshold/WholeRowsPlan.cpp
  survivors/ProvenLists.cu
  survivors/SurvivorSort.cu
  select/large_k/BitsGlobalSelect.cpp
  select/large_k/FindBucket.cu
  select/large_k/MultiPassPlan.cpp
  select/large_k/RadixSort.cu
  select/large_k/RowSort.cpp
  select/large_k/SampleRadixSelect.cpp
  select/large_k/SegmentSort.cu
  select/large_k/SortSelect.cpp
  ${instances})
# The headers alone: the drop-in library brings its own CUDA runtime.
target_include_directories(bits_select SYSTEM PRIVATE
  ${CUDAToolkit_INCLUDE_DIRS})
target_compile_options(bits_select PRIVATE
  # The fat binary of five architectures is large without it.
  $<$<COMPILE_LANGUAGE:CUDA>:-Xfatbin=-compress-all>)
