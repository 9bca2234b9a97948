#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/IvfDirectScratch.h"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/ivf/IvfTimes.h"
#include "kernels/ivf/ListCodes.h"

namespace faiss_bits::ivf_times {

namespace {

// A direct search: to start it all, and beside that to sort its pairs by list,
// to be given its lists, or to select; a term of a pair, and bytes a second.
// Fitted to some times of float32 lists (H100, docs/design/ivf_few_queries.md),
// within 15%. The term does not matter there; it is a guess, and rather too
// much.
constexpr double kDirectTime = 29e-6;
constexpr double kSharedTime = 16e-6;
constexpr double kFewPairsTime = 6e-6; // in place of it, by one block
constexpr double kProbesTime = 12e-6;
constexpr double kSelectionTime = 15e-6;
constexpr double kDirectTermTime = 0.5e-12;
constexpr double kDirectSpeed = 2.2e12;
// A pair takes no less, however few dimensions it has: of queries that share
// lists and a lane with a vector, and of others (H100, d = 8 and 9).
constexpr double kAlonePairTime = 13e-12;
constexpr double kTogetherPairTime = 42e-12;

// Of interleaved float16 and scalar codes, which come through shared memory, of
// a query by itself: a component that is decoded; and how much longer those of
// a part of a step of kIvfDirectDims take, and at most. Fitted, with what
// queries that share them take, to 2^20 vectors of 64 and 128 components in 256
// to 4,096 lists and 2 to 256 queries, each way forced, of eight bits and
// float16 (H100, docs/design/ivf_few_queries.md).
constexpr double kPartOfStep = 2.7;
constexpr double kMostOfPart = 174;
constexpr double kHalfDecodingTime = 0.6e-12;
constexpr double kCodeDecodingTime = 0.7e-12;
// Of queries that share them, a lane with four vectors: to begin, a component
// that is decoded, and a term of a pair. A tile takes as long with fewer
// vectors than it has room for, and as with so many components more.
constexpr double kFoursTime = 17e-6;
constexpr double kFoursDecodingTime = 0.5e-12;
constexpr double kFoursTermTime = 0.25e-12;
constexpr double kFoursMoreDims = 32;
/// Where they are more than finish at once, what each takes at the end: by
/// arithmetic.
constexpr double kFoursFinishTime = 35e-9;
// Of a test of ids: to make the bits of vectors for queries that share lists,
// and to test the ids of a query by itself. The bits may be of more than is
// probed, and a query by itself leaves out what has none: a third is for that.
constexpr double kBitsTime = 6e-6;
constexpr double kBitTime = 13.5e-12;
constexpr double kIdTestTime = 25e-12;
// Of product codes that queries share: to look a component up for eight of
// them, by the cycles of shared memory and a fifth more; to write and read an
// estimate; and all that does not depend on pairs, so that 4 and 16 queries of
// 32 and 8 lists take 75 and 82 us (H200, a run that is not kept).
constexpr double kLookUpTime = 0.35e-12;
constexpr double kEstimateTime = 1.5e-12;
constexpr double kCandidatesTime = 32e-6;
// And where they are more than finish at once: what each takes at the end, a
// component of a candidate there, as many as take no more, and an estimate that
// is in no cache. Fitted to 512 to 4,096 queries of 2 to 32 of 1,024 and 4,096
// lists, parts of two and four components, k = 10 and 100 (H200,
// docs/design/ivf_many_queries.md, "Expected times").
constexpr double kFinishedAtOnce = 256;
constexpr double kProductFinishTime = 18e-9;
constexpr double kProductScoreTime = 4.5e-12;
constexpr double kMostProductScoreTime = 0.82e-9;
constexpr double kMoreEstimateTime = 1.5e-12;

// Of product codes by tables (IvfTableScan.cuh): all that does not depend on
// pairs; an entry for one of eight queries; what else a pair takes; a number of
// a table for eight; what a query takes at the end; and a component of a vector
// that gets its distance there. Fitted to 60 searches of 8 parts of 32, 16 of
// 25 and 24 of 12 components, 2 to 4,096 queries, k = 10 to 501, to 8% on
// average (H100, docs/design/ivf_few_queries.md).
constexpr double kTablesTime = 40e-6;
constexpr double kTableLookUpTime = 0.2e-12;
constexpr double kTableKeepTime = 0.3e-12;
constexpr double kTableEntryTime = 1.25e-12;
constexpr double kTableFinishTime = 36e-9;
constexpr double kTableScoreTime = 2e-12;
constexpr int kH100Multiprocessors = 132;
/// Where entries are sums of terms: to begin, a part of the queries; a
/// component of a term; a number of a table for eight. Fitted to 13 cells of
/// 16 to 53 dimensions a part, of 128 to 4,096 queries (H200).
constexpr double kTermsTime = 1e-6;
constexpr double kTermTime = 0.47e-12;
constexpr double kTermEntryTime = 6e-12;

// Of queries by themselves, fitted to 1 to 64 of them, 8 to 128 of 1,024 and
// 4,096 lists of 2^20 x 128, k = 10 and 100 (H200,
// docs/design/ivf_few_queries_alone.md). Float32 vectors, bytes a second; codes
// of 8 bits by estimates in float32 (IvfCodeFloors.cuh), to begin, and a
// component.
constexpr double kAloneSpeed = 3.2e12;
constexpr idx_t kMostAloneFloats = 63; // queries
constexpr double kCodeFloorsTime = 3.6e-6;
constexpr double kFloorCodeTime = 0.25e-12;
// Product codes with the codebook in shared memory (IvfBookScan.cuh): a
// component, and a look-up beside that. By tables (IvfHeldTables.cuh,
// IvfBookTables.cuh): to begin; a pair, and an entry of it; a table, for a
// component. All where every multiprocessor has a block.
constexpr double kBookTime = 0.55e-12;
constexpr double kBookLookUpTime = 0.44e-12;
constexpr double kBookTablesTime = 4.3e-6;
constexpr double kBookPairTime = 3.8e-12;
constexpr double kBookEntryTime = 0.36e-12;
constexpr double kBookTableTime = 45e-12;
// The finish of these estimates, for so many candidates more: codes of 8 bits,
// and product codes.
constexpr int kFloorsAtATime = 64;
constexpr double kCodeFloorsFinishTime = 8e-6;
constexpr double kBookTablesFinishTime = 9e-6;

/// Seconds for a component that a direct search reads. Of codes that do not
/// come through shared memory: fitted to six times of eight bits (H200), within
/// 15%.
double decodingOf(const IvfDirectPlan& plan, const IvfLists& lists) {
    if (lists.coding == ListCoding::Float32) {
        return 0.1e-12;
    }
    if (lists.coding == ListCoding::Product) {
        return ofComponent(lists);
    }
    return plan.shared || !areStaged(lists)       ? 1.4e-12
            : lists.coding == ListCoding::Float16 ? kHalfDecodingTime
                                                  : kCodeDecodingTime;
}

/// Tiles of so many queries that probe a list, whose queries are as chance has
/// them.
double tilesOfList(const IvfKnnProblem& p, int queries) {
    const double ofList =
            double(p.numQueries) * p.nprobe / double(p.lists.numLists);
    const double probed = 1 - std::exp(-ofList);
    return std::max(
            probed,
            ofList / queries + double(queries - 1) / (2 * queries) * probed);
}

/// Vectors of a query that get distances at the end of a search by tables, of
/// vectors in any order: those up to the k-th least of the leasts of 32, and
/// what the bound adds, or if there is no room for them, few more than k.
double tableCandidates(const IvfKnnProblem& p) {
    constexpr double kMore = 1.1;
    constexpr double kWithinBound = 1.4;
    const double vectors = double(p.mostVectors);
    const double groups = vectors / kIvfGroup;
    const double upToLimit =
            p.k < groups ? -groups * std::log1p(-p.k / groups) : vectors;
    const double most = std::min(kWithinBound * upToLimit, vectors);
    const double room = ivfBoundedRoom(p.k);
    return most <= room ? most : kMore * p.k;
}

/// Beside what starts a direct search by tables.
double ofTableScan(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    const double queries = double(p.numQueries);
    const double probes = queries * p.nprobe;
    const double pairs = queries * double(p.mostVectors);
    const double parts = std::ceil(queries / double(plan.rowsAtATime));
    const double tiles =
            tilesOfList(p, kIvfTableQueries) * double(p.lists.numLists);
    // A tile takes as long with fewer queries or vectors.
    const double inTiles = tiles * kIvfTableQueries / probes *
            (pairs + probes * kIvfTableVectors / 2);
    const double rows = double(1 << p.lists.decoding.partBits);
    const double lookUps = kTableLookUpTime * p.lists.decoding.numParts;
    const double multiprocessors = std::max(p.device.multiprocessors, 1);
    // Of lists that a part of the queries probes.
    const double termLists = double(ivfListsOfTerms(p.lists));
    const double ofTermLists = p.metric == Metric::L2
            ? parts * termLists * (1 - std::exp(-probes / parts / termLists))
            : 0;
    const double tables = plan.byTerms
            ? (queries + ofTermLists) * rows * p.lists.d * kTermTime +
                    tiles * rows * p.lists.decoding.numParts * kTermEntryTime
            : tiles * rows * p.lists.d * kTableEntryTime;
    const double scan = inTiles * (lookUps + kTableKeepTime) + tables;
    // The last of a multiprocessor's queries has it for itself, and takes
    // longer.
    const double finish = (queries + multiprocessors) *
            (kTableFinishTime +
             tableCandidates(p) * p.lists.d * kTableScoreTime);
    return parts * (kTablesTime + (plan.byTerms ? kTermsTime : 0)) +
            pairs * kEstimateTime +
            kH100Multiprocessors / multiprocessors * (scan + finish);
}

/// Beside what starts a direct search that shares product codes.
double ofProductScan(const IvfKnnProblem& p) {
    const double pairs = double(p.numQueries) * double(p.mostVectors);
    const double ofList =
            double(p.numQueries) * p.nprobe / double(p.lists.numLists);
    const double tiles = tilesOfList(p, kIvfProductQueries);
    const double more = std::max(double(p.numQueries) - kFinishedAtOnce, 0.0);
    const double score = p.lists.d *
            std::min(tableCandidates(p) * kProductScoreTime,
                     kMostProductScoreTime);
    return kCandidatesTime +
            more *
            (kProductFinishTime + score +
             double(p.mostVectors) * kMoreEstimateTime) +
            pairs * (kEstimateTime + tiles / ofList * p.lists.d * kLookUpTime);
}

/// Beside what starts a direct search that shares interleaved codes of more
/// than a few dimensions.
double ofFoursScan(const IvfKnnProblem& p) {
    const double probes = double(p.numQueries) * p.nprobe;
    const double vectors =
            double(p.mostVectors) / p.nprobe + double(kIvfFoursVectors) / 2;
    const double tiles =
            tilesOfList(p, kIvfSharedQueries) * double(p.lists.numLists);
    const double bits = p.lists.idTest.isThere()
            ? kBitsTime + kBitTime * double(p.lists.numVectors)
            : 0;
    const double more = std::max(double(p.numQueries) - kFinishedAtOnce, 0.0);
    return kFoursTime + bits + more * kFoursFinishTime +
            vectors * (p.lists.d + kFoursMoreDims) *
            (tiles * kFoursDecodingTime + probes * kFoursTermTime);
}

/// Components that a pair is as long as.
double directDims(const IvfDirectPlan& plan, const IvfLists& lists) {
    if (plan.shared || !areStaged(lists)) {
        return lists.d;
    }
    const int part = lists.d % kIvfDirectDims;
    return lists.d - part + std::min(kPartOfStep * part, kMostOfPart);
}

/// How often the finish of estimates in float32 takes candidates, after the
/// first time.
int furtherFloorsOf(const IvfKnnProblem& p) {
    return (p.k + p.k / 16) / kFloorsAtATime;
}

/// As many queries as take no less where no multiprocessor idles: a query has
/// one or more for itself, and each as many.
double bookQueries(const IvfKnnProblem& p) {
    const double all = std::max(p.device.multiprocessors, 1);
    const double queries = double(p.numQueries);
    return queries <= all ? all / std::floor(all / queries)
                          : all * std::ceil(queries / all);
}

/// Of product codes by queries by themselves, beside what starts it: canonical
/// distances (IvfBookScan.cuh), and estimates by tables (IvfBookTables.cuh).
double ofBookScan(const IvfKnnProblem& p) {
    return bookQueries(p) * double(p.mostVectors) *
            (p.lists.d * kBookTime +
             p.lists.decoding.numParts * kBookLookUpTime);
}

double ofBookTables(const IvfKnnProblem& p) {
    const double parts = p.lists.decoding.numParts;
    return kBookTablesTime +
            bookQueries(p) *
            (double(p.mostVectors) * (kBookPairTime + parts * kBookEntryTime) +
             double(p.nprobe) * p.lists.d * kBookTableTime) +
            furtherFloorsOf(p) * kBookTablesFinishTime;
}

/// Beside what starts a direct search of queries by themselves, where it is not
/// that of sums by eight warps.
std::optional<double> ofQueriesAlone(
        const IvfDirectPlan& plan,
        const IvfKnnProblem& p) {
    if (plan.shared) {
        return {};
    }
    const double components =
            double(p.numQueries) * double(p.mostVectors) * p.lists.d;
    if (hasIvfBookScan(p.lists, p.numQueries, p.nprobe, p.device)) {
        return plan.byTables ? ofBookTables(p) : ofBookScan(p);
    }
    if (hasCodeFloors(plan, p)) {
        return kCodeFloorsTime + components * kFloorCodeTime +
                furtherFloorsOf(p) * kCodeFloorsFinishTime;
    }
    if (p.lists.coding == ListCoding::Float32 && p.k <= kMostFinishedK &&
        p.lists.d > kMostDimsAlone && p.numQueries <= kMostAloneFloats) {
        return components * double(sizeof(float)) / kAloneSpeed;
    }
    return {};
}

/// Of interleaved codes, whose queries by themselves test the ids.
double ofIdTests(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    return !plan.shared && areStaged(p.lists) && p.lists.idTest.isThere()
            ? kIdTestTime * double(p.numQueries) * double(p.mostVectors)
            : 0;
}

} // namespace

double ofDirect(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    const double pairs = double(p.numQueries) * double(p.mostVectors);
    const double bytes = double(numCodesOf(p.lists)) * bitsOfCodes(p.lists) / 8;
    const double probes = double(p.numQueries) * p.nprobe;
    const double lists = double(p.lists.numLists);
    // Of what is read: each list that is probed once, or for each query.
    const double share =
            plan.shared ? lists * (1 - std::exp(-probes / lists)) / probes : 1;
    const bool areSharedVectorsAlone = plan.shared && areSharedAlone(p.lists);
    // A tile of queries decodes a vector once.
    const int together =
            areSharedVectorsAlone ? kIvfAloneQueries : kIvfSharedQueries;
    const double turns = plan.shared ? std::max(share, 1.0 / together) : 1;
    const bool areAlone = p.lists.coding == ListCoding::Product ||
            areVectorsAlone(p.lists) || areSharedVectorsAlone;
    const double arithmetic = pairs *
            std::max(directDims(plan, p.lists) *
                             (kDirectTermTime +
                              turns * decodingOf(plan, p.lists)),
                     areAlone ? kAlonePairTime : kTogetherPairTime);
    const double sorting =
            sortsPairsInOneBlock(p.numQueries * p.nprobe, p.lists.numLists)
            ? kFewPairsTime
            : kSharedTime;
    const double start = kDirectTime + (plan.shared ? sorting : 0) +
            (plan.findsLists ? 0 : kProbesTime) +
            (plan.selects ? kSelectionTime : 0);
    if (plan.shared && plan.byTables) {
        return start + ofTableScan(plan, p);
    }
    if (const auto alone = ofQueriesAlone(plan, p)) {
        return start + ofIdTests(plan, p) + *alone;
    }
    if (plan.shared && p.lists.coding == ListCoding::Product) {
        return start + ofProductScan(p);
    }
    const double reading = share * pairs * bytes / kDirectSpeed;
    if (plan.shared && areSharedByFours(p.lists)) {
        return start + std::max(ofFoursScan(p), reading);
    }
    return start + ofIdTests(plan, p) + std::max(arithmetic, reading);
}

} // namespace faiss_bits::ivf_times
