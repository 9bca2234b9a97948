#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/knn/DistanceMethod.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/all_pairs/AllPairsKnn.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/direct/DirectKnn.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/line/LineKnn.h"
#include "kernels/knn/line/SortedLineKnn.h"
#include "kernels/knn/nearest/FewDimsKnn.h"
#include "kernels/knn/nearest/FewDimsTopKnn.h"
#include "kernels/knn/nearest/NearestKnn.h"
#include "kernels/knn/parts/PartsKnn.h"
#include "kernels/select/Select.h"

namespace faiss_bits {

/// How a search is cut into tiles of the distance matrix, and where its
/// scratch lies.
struct FlatKnnPlan {
    /// Without tiles of approximate distances, one of these: the rest is not
    /// set then, but bytes, and of others than parts certified.
    std::optional<PartsPlan> parts;
    std::optional<LinePlan> line;
    std::optional<SortedLinePlan> sortedLine;
    std::optional<DirectPlan> direct;
    std::optional<FewDimsPlan> fewDims;
    std::optional<FewDimsTopPlan> fewDimsTop;
    std::optional<AllPairsPlan> allPairs;
    std::optional<NearestPlan> nearest;
    std::optional<FusedPlan> fused;

    /// Where the distances come from.
    const DistanceMethod* method = nullptr;
    /// Nearest vectors that the generator is asked for: k, or candidates.
    int places = 0;
    bool certified = false;
    /// Vectors' norms are wanted and not given.
    bool makeVectorNorms = false;
    /// By FlatKnnProblem::allowedIds: vectors are counted by their places
    /// there.
    bool byList = false;
    /// Vectors that the tiles share: n, or those of the list.
    idx_t columns = 0;

    idx_t tileQueries = 0;
    idx_t tileVectors = 0; // of the widest tile
    idx_t numVectorTiles = 0;
    idx_t distanceStride = 0; // of a row of a tile

    /// More than one tile of vectors: results of up to `slots` tiles are
    /// merged at a time; the first slot then holds the best so far.
    int slots = 0;

    /// The selections over tiles and over slots, each planned once.
    struct Selection {
        SelectPlan plan;
        idx_t rows = 0;
        idx_t cols = 0;
        bool ofSlots = false;
    };
    std::vector<Selection> selections;
    /// That of this shape, which is one of them.
    const SelectPlan& selectionOf(idx_t rows, idx_t cols, bool ofSlots) const;

    size_t bytes = 0;

    /// One line: method, tiles, slots, bytes and the first selection.
    std::string toString() const;

    /// Tiles begin at multiples of it (DistanceTile).
    static constexpr idx_t kTileStep = 8;

    /// First vector of tile t; of t = numVectorTiles: n, which is `columns`.
    /// The tiles are of even width, in eights, so that none has fewer than k
    /// vectors: what a short tile would leave in its places could pass for a
    /// result.
    idx_t tileBegin(idx_t t, idx_t n) const {
        const idx_t steps = (n + kTileStep - 1) / kTileStep;
        return std::min(n, t * steps / numVectorTiles * kTileStep);
    }
};

/// The search for candidates of a certified search, or the problem itself: its
/// k and idType, which all but the results are of.
FlatKnnProblem generatorProblem(
        const FlatKnnProblem& problem,
        const FlatKnnPlan& plan);

/// Throws Error, naming the argument, for a shape that no search can have.
void checkFlatKnnShape(const FlatKnnProblem& problem);

/// The largest tiles whose scratch takes at most maxBytes, or the smallest
/// possible if none does. Host only. Throws Error for a bad shape.
FlatKnnPlan planFlatKnn(const FlatKnnProblem& problem, size_t maxBytes);

/// Scratch of one run, in the order it is taken.
struct FlatKnnScratch {
    float* vectorNorms = nullptr; // [n], if the plan makes them
    float* queryNorms = nullptr;  // [numQueries], L2 products
    float* columnBias = nullptr;  // [tileVectors], products with a filter
    void* gathered = nullptr;     // [distanceStride, d], products by list
    idx_t* wideIds = nullptr;     // [numAllowed], by list with ids of Int64
    float* vectorFacts = nullptr; // [n], RowFacts that are wanted, not given
    float* queryFacts = nullptr;  // [numQueries]
    float* distances = nullptr;   // [tileQueries, distanceStride]
    CertifiedScratch certified;
    float* tileKeys[2] = {}; // [tileQueries, slots * k], two in turn
    void* tileIds[2] = {};   // same, of idType
    void* product = nullptr; // of a method: MethodScratch
    Workspace select;

    FlatKnnScratch(
            const FlatKnnProblem& problem,
            const FlatKnnPlan& plan,
            WorkspaceSlices& slices);
};

/// The selection over one tile, and the one over the slots of several: shapes,
/// without pointers.
SelectProblem tileSelection(
        const FlatKnnProblem& problem,
        const FlatKnnPlan& plan,
        idx_t queries,
        idx_t cols);
SelectProblem mergeSelection(
        const FlatKnnProblem& problem,
        const FlatKnnPlan& plan,
        idx_t queries,
        int filledSlots);

} // namespace faiss_bits
