/// The kernels that a clustering runs, as loops on the host in the order of the
/// streams of FakeCuda.cpp, and a device for FAISS to find. They stand before
/// those of the libraries.

#include <cmath>
#include <cstring>
#include <vector>

#include "faiss_bits/flat/VectorKernels.h"
#include "kernels/cluster/ClusterCentroids.h"
#include "kernels/cluster/ClusterSums.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/Norms.h"
#include "tests/flat/FakeCuda.h"

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(
        void* data,
        int value,
        size_t bytes,
        cudaStream_t stream) {
    faiss_bits::test::fake::enqueue(
            stream, [=] { std::memset(data, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
    *ms = 0.5f;
    return cudaSuccess;
}

} // extern "C"

namespace faiss_bits {

using test::fake::enqueue;

DeviceTraits deviceTraits(int) {
    return {};
}

void runFlatKnn(
        const FlatKnnPlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cublasHandle_t,
        cudaStream_t stream) {
    const size_t bytes = plan.bytes;
    enqueue(stream, [=] {
        std::memset(workspace.data, 0xDD, bytes);
        const auto* x = static_cast<const float*>(p.queries);
        const auto* vectors = static_cast<const float*>(p.vectors);
        for (idx_t q = 0; q < p.numQueries; ++q) {
            double best = INFINITY;
            idx_t id = -1;
            for (idx_t v = 0; v < p.numVectors; ++v) {
                double key = 0;
                for (int j = 0; j < p.d; ++j) {
                    const double a = x[q * p.d + j];
                    const double b = vectors[v * p.d + j];
                    key += p.metric == Metric::L2 ? (a - b) * (a - b) : -a * b;
                }
                if (key < best) {
                    best = key;
                    id = v;
                }
            }
            p.outDistances[q] = float(p.metric == Metric::L2 ? best : -best);
            static_cast<idx_t*>(p.outIds)[q] = id;
        }
    });
}

void runSquaredNorms(
        const void* vectors,
        DataType,
        bool,
        idx_t n,
        int d,
        float* norms,
        cudaStream_t stream) {
    enqueue(stream, [=] {
        const auto* x = static_cast<const float*>(vectors);
        for (idx_t i = 0; i < n; ++i) {
            norms[i] = 0;
            for (int j = 0; j < d; ++j) {
                norms[i] += x[i * d + j] * x[i * d + j];
            }
        }
    });
}

void runClusterSums(
        const ClusterSumsProblem& p,
        Workspace workspace,
        cudaStream_t stream) {
    const size_t bytes = clusterSumsWorkspaceBytes(p);
    enqueue(stream, [=] {
        std::memset(workspace.data, 0xDD, bytes);
        if (!p.accumulate) {
            std::memset(p.outSums, 0, sizeof(double) * p.k * p.d);
            std::memset(p.outWeights, 0, sizeof(double) * p.k);
            std::memset(p.outCounts, 0, sizeof(uint64_t) * p.k);
            *p.outObjective = 0;
        }
        for (idx_t i = 0; i < p.n; ++i) {
            const idx_t label = static_cast<const idx_t*>(p.labels)[i];
            if (label < 0) {
                continue;
            }
            const double weight = p.weights ? p.weights[i] : 1;
            for (int j = 0; j < p.d; ++j) {
                p.outSums[label * p.d + j] += weight * p.vectors[i * p.d + j];
            }
            p.outWeights[label] += weight;
            p.outCounts[label] += 1;
            *p.outObjective += p.distances[i];
        }
    });
}

void runFindNotFinite(
        const float* values,
        size_t count,
        unsigned* outCount,
        cudaStream_t stream) {
    enqueue(stream, [=] {
        for (size_t i = 0; i < count; ++i) {
            *outCount += !std::isfinite(values[i]);
        }
    });
}

void runClusterMeans(
        const double* sums,
        const double* weights,
        idx_t first,
        idx_t k,
        int d,
        float* centroids,
        cudaStream_t stream) {
    enqueue(stream, [=] {
        for (idx_t i = first * d; i < k * d; ++i) {
            const double weight = weights[i / d];
            centroids[i] = weight == 0 ? 0 : float(sums[i] / weight);
        }
    });
}

void runClusterSplits(
        const ClusterSplit* splits,
        idx_t numSplits,
        int d,
        float* centroids,
        cudaStream_t stream) {
    enqueue(stream, [=] {
        for (idx_t i = 0; i < numSplits; ++i) {
            for (int j = 0; j < d; ++j) {
                float& from = centroids[idx_t(splits[i].from) * d + j];
                const float step = (j % 2 ? -1 : 1) * 0x1p-10f;
                centroids[idx_t(splits[i].to) * d + j] = from * (1 + step);
                from *= 1 - step;
            }
        }
    });
}

void runFinishCentroids(
        idx_t k,
        int d,
        bool normalize,
        bool round,
        float* centroids,
        cudaStream_t stream) {
    enqueue(stream, [=] {
        for (idx_t c = 0; c < k; ++c) {
            double squares = 0;
            for (int j = 0; j < d; ++j) {
                squares += std::pow(double(centroids[c * d + j]), 2);
            }
            for (int j = 0; j < d; ++j) {
                float& value = centroids[c * d + j];
                value = normalize && squares > 0
                        ? float(value / std::sqrt(squares))
                        : value;
                value = round ? std::round(value) : value;
            }
        }
    });
}

namespace gpu::detail {

void runGather(const GatherProblem& p, cudaStream_t stream) {
    enqueue(stream, [=] {
        for (idx_t i = 0; i < p.numIds; ++i) {
            std::memcpy(
                    p.out + i * p.d,
                    static_cast<const float*>(p.vectors) + p.ids[i] * p.d,
                    sizeof(float) * p.d);
        }
    });
}

} // namespace gpu::detail
} // namespace faiss_bits
