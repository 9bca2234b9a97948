#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "kernels/common/Workspace.h"
#include "kernels/metric_space/GroupsMemory.h"

namespace faiss_bits::bench {

/// One index, on the GPU and for the CPU.
struct MetricIndex {
    std::string name;     // brute_force, list_of_clusters, sss
    std::string settings; // what is particular to it
    bool forCpu = true;
    metric_space::GroupsMemory memory;
    std::optional<metric_space::ListOfClusters> list;
    std::optional<metric_space::PivotTable> table;
    std::vector<float> ordered; // for the CPU
    double buildMs = 0;
};

/// What is made of the vectors beside brute force and a List of Clusters: SSS
/// of some alpha, and of some numbers of pivots (figure 2), which the CPU
/// leaves out.
struct MetricIndexSettings {
    std::vector<double> alphas = {0.66};
    std::vector<int64_t> pivots;
    int bucketSize = 64;
};

/// All indexes of the vectors, which lie on the host and on the device. Scratch
/// is on the device.
std::list<MetricIndex> makeMetricIndexes(
        const metric_space::MetricVectors& onHost,
        const metric_space::MetricVectors& onDevice,
        const MetricIndexSettings& settings,
        Workspace scratch);

} // namespace faiss_bits::bench
