#include "kernels/knn/FlatKnn.h"

#include <algorithm>

#include "kernels/common/CublasScope.h"
#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/few_queries/FewQueriesLaunch.h"
#include "kernels/knn/gemm/Distances.h"
#include "kernels/select/Select.h"

namespace faiss_bits {

namespace {

void checkPointers(const FlatKnnProblem& p, bool withIds) {
    BITS_THROW_IF_NOT_FMT(p.queries, "queries = nullptr");
    BITS_THROW_IF_NOT_FMT(p.vectors || p.numVectors == 0, "vectors = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outDistances, "outDistances = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outIds || !withIds, "outIds = nullptr");
}

cudaDataType_t cublasType(DataType type) {
    switch (type) {
        case DataType::Float32:
            return CUDA_R_32F;
        case DataType::Float16:
            return CUDA_R_16F;
        case DataType::BFloat16:
            return CUDA_R_16BF;
    }
    throw Error(formatMessage("dataType = %d is unknown", int(type)));
}

/// Vectors or queries `first` and on, by type and layout.
const void* from(
        const void* data,
        const FlatKnnProblem& p,
        bool rowMajor,
        idx_t first) {
    return static_cast<const uint8_t*>(data) +
            size_t(first) * (rowMajor ? p.d : 1) * sizeOf(p.dataType);
}

/// One search at work: what does not change from tile to tile.
class FlatKnnRun {
   public:
    FlatKnnRun(
            const FlatKnnProblem& problem,
            const FlatKnnPlan& plan,
            const FlatKnnScratch& scratch,
            cublasHandle_t handle,
            cudaStream_t stream)
            : p_(problem),
              plan_(plan),
              scratch_(scratch),
              handle_(handle),
              stream_(stream) {}

    void run() {
        vectorNorms_ = p_.vectorNorms;
        if (plan_.makeVectorNorms) {
            runSquaredNorms(
                    p_.vectors,
                    p_.dataType,
                    p_.vectorsRowMajor,
                    p_.numVectors,
                    p_.d,
                    scratch_.vectorNorms,
                    stream_);
            vectorNorms_ = scratch_.vectorNorms;
        }
        if (scratch_.queryNorms) {
            runSquaredNorms(
                    p_.queries,
                    p_.dataType,
                    p_.queriesRowMajor,
                    p_.numQueries,
                    p_.d,
                    scratch_.queryNorms,
                    stream_);
        }
        for (idx_t q = 0; q < p_.numQueries; q += plan_.tileQueries) {
            runQueries(q, std::min(plan_.tileQueries, p_.numQueries - q));
        }
    }

   private:
    void runQueries(idx_t firstQuery, idx_t count) {
        const size_t outAt = size_t(firstQuery) * p_.k;
        uint8_t* outIds =
                static_cast<uint8_t*>(p_.outIds) + outAt * sizeOf(p_.idType);
        if (plan_.numVectorTiles == 1) {
            computeDistances(firstQuery, count, 0, p_.numVectors);
            SelectProblem select =
                    tileSelect(firstQuery, count, 0, p_.numVectors);
            select.outKeys = p_.outDistances + outAt;
            select.outIds = outIds;
            runSelect(select, scratch_.select, stream_);
            return;
        }
        // Tile by tile into the slots of one buffer; when they are full, the
        // best of them go to the first slot of the other.
        int buffer = 0;
        int filled = 0;
        for (idx_t t = 0; t < plan_.numVectorTiles; ++t) {
            const idx_t first = plan_.tileBegin(t, p_.numVectors);
            const idx_t vectors = plan_.tileBegin(t + 1, p_.numVectors) - first;
            computeDistances(firstQuery, count, first, vectors);
            SelectProblem select =
                    tileSelect(firstQuery, count, first, vectors);
            const idx_t place = idx_t(filled) * p_.k;
            select.outKeys = scratch_.tileKeys[buffer] + place;
            select.outIds = idsAt(buffer, place);
            select.outStride = idx_t(plan_.slots) * p_.k;
            runSelect(select, scratch_.select, stream_);
            ++filled;

            const bool last = t + 1 == plan_.numVectorTiles;
            if (filled == plan_.slots || last) {
                const int next = buffer ^ 1;
                mergeSlots(
                        count,
                        filled,
                        buffer,
                        last ? p_.outDistances + outAt
                             : scratch_.tileKeys[next],
                        last ? outIds : idsAt(next, 0),
                        last ? p_.k : idx_t(plan_.slots) * p_.k);
                buffer = next;
                filled = 1;
            }
        }
    }

    /// The best of the filled slots of a buffer, in [count, k] with outStride.
    void mergeSlots(
            idx_t count,
            int filled,
            int buffer,
            float* outKeys,
            void* outIds,
            idx_t outStride) {
        SelectProblem merge = mergeSelection(p_, plan_, count, filled);
        merge.keys = scratch_.tileKeys[buffer];
        merge.ids = plan_.mergeByPlace ? nullptr : idsAt(buffer, 0);
        merge.outKeys = outKeys;
        merge.outIds = outIds;
        merge.outStride = outStride;
        runSelect(merge, scratch_.select, stream_);
        if (plan_.mergeByPlace) {
            // Equal keys lie in the order of their ids: within a slot by the
            // contract, and the slots come in the order of their vectors.
            runPlacesToIds(
                    idsAt(buffer, 0),
                    merge.rowStride,
                    outIds,
                    outStride,
                    p_.idType,
                    count,
                    p_.k,
                    stream_);
        }
    }

    void* idsAt(int buffer, idx_t place) const {
        return static_cast<uint8_t*>(scratch_.tileIds[buffer]) +
                place * sizeOf(p_.idType);
    }

    SelectProblem tileSelect(
            idx_t firstQuery,
            idx_t count,
            idx_t first,
            idx_t vectors) {
        SelectProblem select = tileSelection(p_, plan_, count, vectors);
        select.keys = scratch_.distances;
        select.rowStride = plan_.distanceStride;
        select.idOffset = first;
        if (select.colBias) {
            select.colBias = vectorNorms_ + first;
            select.rowBias = scratch_.queryNorms + firstQuery;
        }
        return select;
    }

    /// The products of a tile, or for few queries its distances.
    void computeDistances(
            idx_t firstQuery,
            idx_t queries,
            idx_t firstVector,
            idx_t vectors) {
        if (vectors == 0) {
            return;
        }
        if (plan_.fewQueries) {
            computeSmallBatch(firstQuery, queries, firstVector, vectors);
            return;
        }
        multiply(
                p_,
                firstQuery,
                queries,
                firstVector,
                vectors,
                scratch_.distances,
                plan_.distanceStride,
                handle_);
    }

    void computeSmallBatch(
            idx_t firstQuery,
            idx_t queries,
            idx_t firstVector,
            idx_t vectors) {
        FewQueriesParams params;
        params.vectors = from(p_.vectors, p_, true, firstVector);
        // Row-major, or the same in both layouts (fitsFewQueries).
        params.queries = from(p_.queries, p_, true, firstQuery);
        params.numVectors = vectors;
        params.numQueries = int(queries);
        params.d = p_.d;
        params.distances = scratch_.distances;
        params.distanceStride = plan_.distanceStride;

        const bool isFloat = p_.dataType == DataType::Float32;
        const bool vectorLoads = p_.d % 4 == 0 &&
                reinterpret_cast<uintptr_t>(p_.vectors) %
                                (4 * sizeOf(p_.dataType)) ==
                        0;
        const auto launch = [&]() {
            switch (fewQueriesLanes(p_.d)) {
                case 4:
                    return isFloat ? launchFewQueries<FloatVectors, 4>
                                   : launchFewQueries<HalfVectors, 4>;
                case 8:
                    return isFloat ? launchFewQueries<FloatVectors, 8>
                                   : launchFewQueries<HalfVectors, 8>;
                case 16:
                    return isFloat ? launchFewQueries<FloatVectors, 16>
                                   : launchFewQueries<HalfVectors, 16>;
                default:
                    return isFloat ? launchFewQueries<FloatVectors, 32>
                                   : launchFewQueries<HalfVectors, 32>;
            }
        }();
        launch(params,
               fewQueriesInstance(int(queries)),
               p_.metric == Metric::L2,
               vectorLoads,
               p_.multiprocessors,
               stream_);
    }

   public:
    /// distances[q][v] = <query, vector>, times -2 for L2.
    static void multiply(
            const FlatKnnProblem& p,
            idx_t firstQuery,
            idx_t queries,
            idx_t firstVector,
            idx_t vectors,
            float* distances,
            idx_t stride,
            cublasHandle_t handle) {
        const cudaDataType_t type = cublasType(p.dataType);
        const float alpha = p.metric == Metric::L2 ? -2.0f : 1.0f;
        const float beta = 0.0f;
        // Row-major [queries, vectors] is cuBLAS's [vectors, queries].
        BITS_CUBLAS_CHECK(cublasGemmEx_64(
                handle,
                p.vectorsRowMajor ? CUBLAS_OP_T : CUBLAS_OP_N,
                p.queriesRowMajor ? CUBLAS_OP_N : CUBLAS_OP_T,
                vectors,
                queries,
                p.d,
                &alpha,
                from(p.vectors, p, p.vectorsRowMajor, firstVector),
                type,
                p.vectorsRowMajor ? p.d : p.numVectors,
                from(p.queries, p, p.queriesRowMajor, firstQuery),
                type,
                p.queriesRowMajor ? p.d : p.numQueries,
                &beta,
                distances,
                CUDA_R_32F,
                stride,
                CUBLAS_COMPUTE_32F,
                CUBLAS_GEMM_DEFAULT));
    }

   private:
    const FlatKnnProblem& p_;
    const FlatKnnPlan& plan_;
    const FlatKnnScratch& scratch_;
    cublasHandle_t handle_;
    cudaStream_t stream_;
    const float* vectorNorms_ = nullptr;
};

/// Norms that all distances need and the caller did not give.
struct AllDistancesScratch {
    float* vectorNorms = nullptr;
    float* queryNorms = nullptr;

    AllDistancesScratch(const FlatKnnProblem& p, WorkspaceSlices& slices) {
        if (p.metric == Metric::L2) {
            queryNorms = slices.take<float>(p.numQueries);
            if (!p.vectorNorms) {
                vectorNorms = slices.take<float>(p.numVectors);
            }
        }
    }
};

} // namespace

size_t flatKnnWorkspaceBytes(const FlatKnnProblem& problem, size_t maxBytes) {
    return planFlatKnn(problem, maxBytes).bytes;
}

void runFlatKnn(
        const FlatKnnProblem& problem,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream) {
    const FlatKnnPlan plan = planFlatKnn(problem, workspace.bytes);
    if (problem.numQueries == 0) {
        return;
    }
    checkPointers(problem, true);
    WorkspaceSlices slices(workspace);
    const FlatKnnScratch scratch(problem, plan, slices);
    CublasScope scope(handle, stream);
    FlatKnnRun(problem, plan, scratch, handle, stream).run();
}

size_t allDistancesWorkspaceBytes(const FlatKnnProblem& problem) {
    WorkspaceSlices slices;
    AllDistancesScratch(problem, slices);
    return slices.used();
}

void runAllDistances(
        const FlatKnnProblem& problem,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream) {
    FlatKnnProblem p = problem;
    p.k = 1; // not read, but checked
    (void)planFlatKnn(p, 0);
    if (p.numQueries == 0 || p.numVectors == 0) {
        return;
    }
    checkPointers(p, false);
    WorkspaceSlices slices(workspace);
    const AllDistancesScratch scratch(p, slices);
    CublasScope scope(handle, stream);
    FlatKnnRun::multiply(
            p,
            0,
            p.numQueries,
            0,
            p.numVectors,
            p.outDistances,
            p.numVectors,
            handle);
    if (p.metric == Metric::L2) {
        const auto norms =
                [&](const void* data, bool rowMajor, idx_t n, float* out) {
                    runSquaredNorms(
                            data, p.dataType, rowMajor, n, p.d, out, stream);
                };
        norms(p.queries, p.queriesRowMajor, p.numQueries, scratch.queryNorms);
        if (!p.vectorNorms) {
            norms(p.vectors,
                  p.vectorsRowMajor,
                  p.numVectors,
                  scratch.vectorNorms);
        }
        runAddNorms(
                p.outDistances,
                p.numQueries,
                p.numVectors,
                p.vectorNorms ? p.vectorNorms : scratch.vectorNorms,
                scratch.queryNorms,
                stream);
    }
}

} // namespace faiss_bits
