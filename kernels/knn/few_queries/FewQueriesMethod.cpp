/// Few queries: each vector is read once, for all of them.

#include "kernels/knn/DistanceMethod.h"
#include "kernels/knn/few_queries/FewQueriesLaunch.h"

namespace faiss_bits {

namespace {

using Launch =
        void (*)(const FewQueriesParams&, int, bool, bool, int, cudaStream_t);

template <class Vectors>
Launch launchFor(int lanes) {
    switch (lanes) {
        case 4:
            return launchFewQueries<Vectors, 4>;
        case 8:
            return launchFewQueries<Vectors, 8>;
        case 16:
            return launchFewQueries<Vectors, 16>;
        default:
            return launchFewQueries<Vectors, 32>;
    }
}

class FewQueriesDistances : public TileDistances {
   public:
    FewQueriesDistances(
            const FlatKnnProblem& problem,
            float* values,
            idx_t stride)
            : problem_(problem), values_(values), stride_(stride) {}

    void run(const DistanceTile& tile, cudaStream_t stream) const override {
        const FlatKnnProblem& p = problem_;
        const size_t rowBytes = size_t(p.d) * sizeOf(p.dataType);
        FewQueriesParams params;
        params.vectors = static_cast<const uint8_t*>(p.vectors) +
                size_t(tile.firstVector) * rowBytes;
        // Row-major, or the same in both layouts (takes).
        params.queries = static_cast<const uint8_t*>(p.queries) +
                size_t(tile.firstQuery) * rowBytes;
        params.numVectors = tile.numVectors;
        params.numQueries = int(tile.numQueries);
        params.d = p.d;
        params.distances = values_;
        params.distanceStride = stride_;

        const int lanes = fewQueriesLanes(p.d);
        const Launch launch = p.dataType == DataType::Float32
                ? launchFor<FloatVectors>(lanes)
                : launchFor<HalfVectors>(lanes);
        const bool vectorLoads = p.d % 4 == 0 &&
                reinterpret_cast<uintptr_t>(p.vectors) %
                                (4 * sizeOf(p.dataType)) ==
                        0;
        launch(params,
               fewQueriesInstance(params.numQueries),
               p.metric == Metric::L2,
               vectorLoads,
               p.device.multiprocessors,
               stream);
    }

   private:
    const FlatKnnProblem& problem_;
    float* values_;
    idx_t stride_;
};

bool takes(const FlatKnnProblem& p) {
    const idx_t batch = std::max(p.batchQueries, p.numQueries);
    return batch <= kMaxFewQueries && p.vectorsRowMajor &&
            (p.queriesRowMajor || p.d == 1 || batch == 1) &&
            p.dataType != DataType::BFloat16 &&
            fewQueriesSharedBytes(int(batch), p.d) <= kMaxFewQueriesBytes;
}

std::unique_ptr<TileDistances> prepare(
        const FlatKnnProblem& problem,
        const RowFactsOf&,
        float* values,
        idx_t stride,
        cublasHandle_t) {
    return std::make_unique<FewQueriesDistances>(problem, values, stride);
}

} // namespace

const DistanceMethod kFewQueriesMethod = {"few_queries", takes, false, prepare};

} // namespace faiss_bits
