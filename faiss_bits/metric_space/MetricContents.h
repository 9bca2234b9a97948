#pragma once

#include <vector>

#include <faiss/Index.h>

#include "kernels/metric_space/MetricSpace.h"

/// What the indexes for metric spaces on the CPU and on the GPU share. Not part
/// of the API.
namespace faiss_bits::detail {

/// On a GPU, vectors that are side by side in the order of pivots and looked at
/// together.
constexpr int kPivotGroup = 64;

enum class MetricIndexKind : uint32_t { ListOfClusters = 1, Sss = 2 };

/// Everything that is in such an index, and in its file.
struct MetricContents {
    MetricIndexKind kind = MetricIndexKind::ListOfClusters;
    Metric metric = Metric::L2;
    int d = 0;
    idx_t n = 0;
    std::vector<float> vectors; ///< [n, d]; empty where they are on a GPU
    metric_space::ListOfClustersOptions listOptions;
    metric_space::PivotOptions pivotOptions;
    /// Whether list or table, by the kind, are of these vectors.
    bool isBuilt = false;
    metric_space::ListOfClusters list;
    metric_space::PivotTable table; ///< distances: on the CPU alone

    metric_space::MetricVectors view() const {
        return {metric, d, n, vectors.data()};
    }
};

/// The metric; throws FaissException naming one that is not L2, L1 or Linf.
Metric trueMetricOf(faiss::MetricType metric);
faiss::MetricType faissMetricOf(Metric metric);

/// Each throws FaissException that names what is wrong.
void requireNoFilter(const faiss::SearchParameters* params);
void requireRoomFor(idx_t ntotal, idx_t n, const float* x);

/// Writes the contents, vectors and all, to a file of our own format: FAISS's
/// write_index does not know the class. Throws FaissException naming the file.
void writeMetricFile(const char* fname, const MetricContents& contents);
/// Reads it; throws FaissException naming the file for what is none of this
/// kind, cut off or changed (it has a sum over all its bytes). Distances of a
/// table are not in the file.
MetricContents readMetricFile(const char* fname, MetricIndexKind kind);

} // namespace faiss_bits::detail
