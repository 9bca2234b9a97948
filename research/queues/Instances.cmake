# The queue methods: what kernels/CMakeLists.txt builds for them. Sets
# queue_sources and adds to `instances` by add_instance().
set(queue_sources
  ../research/queues/PartialBitonicSelect.cpp
  ../research/queues/PartialBitonicShared.cu
  ../research/queues/QueueLevels.cu
  ../research/queues/QueuePlan.cpp
  ../research/queues/QueueProblem.cpp
  ../research/queues/QueueSelect.cpp
  ../research/queues/SortPasses.cpp)

# Kinds of queues, and whether merges are aligned. One instance serves all
# types of keys.
set(queue_header "research/queues/QueueKernels.cuh")
set(queue_arguments "const QueueParams&, unsigned, int, cudaStream_t")
foreach(queue "Insertion, false" "Heap, false" "Merge, false" "Merge, true")
  string(REPLACE ", " "_" name "${queue}")
  add_instance(${queue_header} "queue_${name}"
    "launchQueueSearch<QueueKind::${queue}>(${queue_arguments})")
endforeach()

# Threads and items of a thread; their product is the size of the list.
set(bitonic_header "research/queues/PartialBitonic.cuh")
set(bitonic_arguments "const PartialBitonicParams&, unsigned, cudaStream_t")
foreach(size "128, 1" "128, 2" "128, 4" "256, 4" "256, 8")
  string(REPLACE ", " "_" name "${size}")
  add_instance(${bitonic_header} "partial_bitonic_${name}"
    "launchPartialBitonic<${size}>(${bitonic_arguments})")
endforeach()
