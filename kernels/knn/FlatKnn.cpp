#include "kernels/knn/FlatKnn.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "kernels/common/Error.h"
#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/Norms.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/filter/FilterTiles.h"
#include "kernels/select/Select.h"

namespace faiss_bits {

namespace {

void checkPointers(const FlatKnnProblem& p) {
    BITS_THROW_IF_NOT_FMT(p.queries, "queries = nullptr");
    BITS_THROW_IF_NOT_FMT(p.vectors || p.numVectors == 0, "vectors = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outDistances, "outDistances = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outIds, "outIds = nullptr");
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
            : p_(generatorProblem(problem, plan)),
              plan_(plan),
              scratch_(scratch),
              stream_(stream),
              filter_(p_, plan, scratch) {
        if (plan.columns > 0) {
            distances_ = plan.method->prepare(
                    p_,
                    {{p_.vectorFacts ? p_.vectorFacts : scratch.vectorFacts,
                      scratch.queryFacts},
                     scratch.product},
                    scratch.distances,
                    plan.distanceStride,
                    handle);
        }
        if (plan.certified) {
            certifier_.emplace(
                    problem,
                    plan.places,
                    plan.method->bound(p_),
                    scratch.certified,
                    stream);
        }
    }

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
        runFactsOfRows(p_, scratch_.vectorFacts, scratch_.queryFacts, stream_);
        if (certifier_) {
            certifier_->begin();
        }
        for (idx_t q = 0; q < p_.numQueries; q += plan_.tileQueries) {
            const idx_t count = std::min(plan_.tileQueries, p_.numQueries - q);
            if (certifier_) {
                runQueries(
                        q,
                        count,
                        scratch_.certified.keys,
                        scratch_.certified.columns);
                certifier_->finish(q, count);
            } else {
                const size_t outAt = size_t(q) * p_.k;
                runQueries(
                        q,
                        count,
                        p_.outDistances + outAt,
                        static_cast<uint8_t*>(p_.outIds) +
                                outAt * sizeOf(p_.idType));
            }
        }
    }

   private:
    /// The k nearest of some queries to outKeys and outIds [count, k].
    void runQueries(
            idx_t firstQuery,
            idx_t count,
            float* outKeys,
            void* outIds) {
        if (plan_.numVectorTiles == 1) {
            computeDistances(firstQuery, count, 0, plan_.columns);
            SelectProblem select =
                    tileSelect(firstQuery, count, 0, plan_.columns);
            select.outKeys = outKeys;
            select.outIds = outIds;
            runSelect(
                    plan_.selectionOf(count, select.cols, false),
                    select,
                    scratch_.select,
                    stream_);
            return;
        }
        // Tile by tile into the slots of one buffer; when they are full, the
        // best of them go to the first slot of the other.
        int buffer = 0;
        int filled = 0;
        for (idx_t t = 0; t < plan_.numVectorTiles; ++t) {
            const idx_t first = plan_.tileBegin(t, plan_.columns);
            const idx_t vectors = plan_.tileBegin(t + 1, plan_.columns) - first;
            computeDistances(firstQuery, count, first, vectors);
            SelectProblem select =
                    tileSelect(firstQuery, count, first, vectors);
            const idx_t place = idx_t(filled) * p_.k;
            select.outKeys = scratch_.tileKeys[buffer] + place;
            select.outIds = idsAt(buffer, place);
            select.outStride = idx_t(plan_.slots) * p_.k;
            runSelect(
                    plan_.selectionOf(count, vectors, false),
                    select,
                    scratch_.select,
                    stream_);
            ++filled;

            const bool last = t + 1 == plan_.numVectorTiles;
            if (filled == plan_.slots || last) {
                const int next = buffer ^ 1;
                mergeSlots(
                        count,
                        filled,
                        last,
                        buffer,
                        last ? outKeys : scratch_.tileKeys[next],
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
            bool last,
            int buffer,
            float* outKeys,
            void* outIds,
            idx_t outStride) {
        SelectProblem merge = mergeSelection(p_, plan_, count, filled);
        merge.keys = scratch_.tileKeys[buffer];
        merge.dropNan = last;
        merge.ids = idsAt(buffer, 0);
        merge.outKeys = outKeys;
        merge.outIds = outIds;
        merge.outStride = outStride;
        // Equal keys go to the lower column, which is the lower id: slots come
        // in the order of their vectors, and so do the places of a slot.
        runSelect(
                plan_.selectionOf(count, merge.cols, true),
                merge,
                scratch_.select,
                stream_);
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
        if (select.hasColBias()) {
            select.colBias = filter_.columnBias() ? filter_.columnBias()
                                                  : vectorNorms_ + first;
        }
        if (select.hasRowBias()) {
            select.rowBias = scratch_.queryNorms + firstQuery;
        }
        if (select.hasIds()) {
            select.idOffset = 0;
            select.ids = filter_.ids(first);
        }
        return select;
    }

    void computeDistances(
            idx_t firstQuery,
            idx_t queries,
            idx_t firstVector,
            idx_t vectors) {
        if (vectors > 0) {
            filter_.enter(firstVector, vectors, vectorNorms_, stream_);
            distances_->run(
                    {firstQuery,
                     queries,
                     firstVector,
                     vectors,
                     plan_.byList ? p_.allowedIds + firstVector : nullptr,
                     filter_.gathered()},
                    stream_);
            filter_.leave(firstVector, vectors, queries, stream_);
        }
    }

    const FlatKnnProblem p_; // of the generator
    const FlatKnnPlan& plan_;
    const FlatKnnScratch& scratch_;
    cudaStream_t stream_;
    FilterTiles filter_;
    std::unique_ptr<TileDistances> distances_; // none without vectors
    const float* vectorNorms_ = nullptr;
    std::optional<Certifier> certifier_;
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
    runFlatKnn(
            planFlatKnn(problem, workspace.bytes),
            problem,
            workspace,
            handle,
            stream);
}

void runFlatKnn(
        const FlatKnnPlan& plan,
        const FlatKnnProblem& problem,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream) {
    if (problem.numQueries == 0) {
        return;
    }
    checkPointers(problem);
    if (plan.parts) {
        runParts(*plan.parts, problem, workspace, handle, stream);
        return;
    }
    if (plan.line) {
        runLine(*plan.line, problem, workspace, stream);
        return;
    }
    if (plan.sortedLine) {
        runSortedLine(*plan.sortedLine, problem, workspace, stream);
        return;
    }
    if (plan.direct) {
        runDirect(*plan.direct, problem, workspace, stream);
        return;
    }
    if (plan.fewDims) {
        runFewDims(*plan.fewDims, problem, workspace, stream);
        return;
    }
    if (plan.fewDimsTop) {
        runFewDimsTop(*plan.fewDimsTop, problem, workspace, stream);
        return;
    }
    if (plan.allPairs) {
        runAllPairs(*plan.allPairs, problem, workspace, stream);
        return;
    }
    if (plan.nearest) {
        runNearest(*plan.nearest, problem, workspace, stream);
        return;
    }
    if (plan.fused) {
        runFused(*plan.fused, problem, workspace, handle, stream);
        return;
    }
    WorkspaceSlices slices(workspace);
    const FlatKnnScratch scratch(problem, plan, slices);
    BITS_THROW_IF_NOT_FMT(handle, "handle = nullptr");
    FlatKnnRun(problem, plan, scratch, handle, stream).run();
}

} // namespace faiss_bits
