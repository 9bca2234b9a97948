/// Few queries: each vector is read once, for all of them.

#include "kernels/knn/DistanceMethod.h"
#include "kernels/knn/few_queries/FewQueriesLaunch.h"

namespace faiss_bits {

namespace {

using Launch =
        void (*)(const FewQueriesParams&, int, bool, bool, int, cudaStream_t);

template <class Vectors, bool Filtered>
Launch launchFor(int lanes) {
    switch (lanes) {
        case 4:
            return launchFewQueries<Vectors, 4, Filtered>;
        case 8:
            return launchFewQueries<Vectors, 8, Filtered>;
        case 16:
            return launchFewQueries<Vectors, 16, Filtered>;
        default:
            return launchFewQueries<Vectors, 32, Filtered>;
    }
}

template <class Vectors>
Launch launchFor(int lanes, bool filtered) {
    return filtered ? launchFor<Vectors, true>(lanes)
                    : launchFor<Vectors, false>(lanes);
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
        params.vectors = p.vectors;
        if (tile.ids) {
            params.ids = tile.ids;
        } else {
            params.vectors = static_cast<const uint8_t*>(p.vectors) +
                    size_t(tile.firstVector) * rowBytes;
            if (p.allowedBits) {
                params.allowed =
                        reinterpret_cast<const uint8_t*>(p.allowedBits) +
                        tile.firstVector / 8;
            }
        }
        const bool filtered = params.ids || params.allowed;
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
                ? launchFor<FloatVectors>(lanes, filtered)
                : launchFor<HalfVectors>(lanes, filtered);
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

ErrorBound bound(const FlatKnnProblem& p) {
    ErrorBound bound;
    const double error = errorOfRoundings(p.d + 4.0, kFloat32Unit);
    bound.ofProducts = p.metric == Metric::InnerProduct;
    // L2: of sum((x - q)^2), all of whose terms are positive.
    (bound.ofProducts ? bound.ofNorms : bound.relative) = error;
    bound.absolute = (p.d + 8.0) * 0x1p-124;
    return bound;
}

std::unique_ptr<TileDistances> prepare(
        const FlatKnnProblem& problem,
        const MethodScratch&,
        float* values,
        idx_t stride,
        cublasHandle_t) {
    return std::make_unique<FewQueriesDistances>(problem, values, stride);
}

} // namespace

const DistanceMethod kFewQueriesMethod =
        {"few_queries", takes, false, bound, prepare, true};

} // namespace faiss_bits
