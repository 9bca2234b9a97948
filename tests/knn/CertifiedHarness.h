#pragma once

#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/tensor/SearchImage.h"
#include "tests/common/HardVectors.h"
#include "tests/knn/KnnHarness.h"

/// Certified searches in data whose float32 distances mislead.
namespace faiss_bits::test {

struct CertifiedCase {
    Metric metric = Metric::L2;
    DataType dataType = DataType::Float32;
    int64_t n = 3000;
    int64_t q = 20;
    int d = 24;
    int k = 10;
    float p = 3;       ///< of Lp
    int allowedOf = 0; ///< one vector of so many is allowed; 0: all
    int holes = -1; ///< allowed: a list too, with so many -1 behind; -1: none
    bool exactQueries = false; ///< float32 queries for 16-bit vectors
    bool keptImage = false;    ///< as an index gives it to every search
    bool imageInOrder = false; ///< that one, as range searches leave it
    bool imageHasBytes = true; ///< and has 8 bits too, where such vectors may
    /// Whether it computes the canonical distances of all pairs. Never, so
    /// that other methods are tested on small problems.
    enum class Direct {
        Never,
        WhereItPays,
        Always,
        AllPairs,   ///< always, by a matrix, and products of float64
        Digits,     ///< the same, and products of digits
        Strips,     ///< never; with limits from strips
        AtOnce,     ///< the same by one kernel
        FewDims,    ///< never; strips by float32
        FewDimsTop, ///< the same for several places
        SortedLine, ///< never; one dimension, by sorted numbers
        // Never; a second search by those, after strips of products or lists.
        NearestFirst,
        FusedFirst,
    } direct = Direct::Never;
    size_t maxScratch = kRoomyScratch;
    IdType idType = IdType::Int64;
    SearchMode mode = SearchMode::Certified;
    std::vector<float> limits; ///< of each query, given; none: not given
    int64_t partVectors = 0;   ///< that are searched together at most

    std::string describe() const {
        std::ostringstream text;
        text << metricName(metric) << " " << nameOf(dataType) << " n=" << n
             << " q=" << q << " d=" << d << " k=" << k << " p=" << p
             << " allowedOf=" << allowedOf << " holes=" << holes
             << (exactQueries ? " exact queries" : "")
             << (keptImage ? " kept image" : "")
             << (imageInOrder ? " in order" : "") << " direct=" << int(direct)
             << " maxScratch=" << maxScratch << " parts of " << partVectors;
        return text.str();
    }
};

/// Of searches by the canonical distances of all pairs.
inline const std::vector<Metric> kDirectMetrics = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::L1,
        Metric::Linf,
        Metric::Cosine};

class FlatKnnCertified : public FlatKnnTest {
   protected:
    using Direct = CertifiedCase::Direct;

    static CertifiedCase caseOf(
            Direct direct,
            Metric metric,
            int64_t n,
            int64_t q,
            int d,
            int k) {
        CertifiedCase c;
        c.metric = metric;
        c.n = n;
        c.q = q;
        c.d = d;
        c.k = k;
        c.direct = direct;
        return c;
    }

    static DeviceTraits traitsOf(const CertifiedCase& c) {
        DeviceTraits traits = deviceTraits();
        const bool never = c.direct == Direct::Never ||
                c.direct == Direct::Strips || c.direct == Direct::AtOnce;
        traits.singleToDouble = never ? 32 : 2;
        return traits;
    }

    static FlatKnnPlan planOf(const CertifiedCase& c, const FlatKnnProblem& p) {
        if (c.direct <= Direct::WhereItPays) {
            return planFlatKnn(p, c.maxScratch);
        }
        FlatKnnPlan plan;
        plan.certified = true;
        if (c.direct == Direct::AllPairs || c.direct == Direct::Digits) {
            plan.allPairs = planAllPairs(
                    p,
                    c.maxScratch,
                    c.direct == Direct::Digits ? PairProducts::Digits
                                               : PairProducts::Float64);
            plan.bytes = plan.allPairs ? plan.allPairs->bytes : 0;
            return plan;
        }
        if (c.direct == Direct::Strips || c.direct == Direct::AtOnce) {
            plan.fused = c.direct == Direct::AtOnce
                    ? planAtOnce(p, c.maxScratch)
                    : planFusedByStrips(p, c.maxScratch);
            plan.bytes = plan.fused ? plan.fused->bytes : 0;
            return plan;
        }
        if (c.direct == Direct::FewDims) {
            plan.fewDims = planFewDims(p, c.maxScratch);
            plan.bytes = plan.fewDims ? plan.fewDims->bytes : 0;
            return plan;
        }
        if (c.direct == Direct::FewDimsTop) {
            plan.fewDimsTop = planFewDimsTop(p, c.maxScratch);
            plan.bytes = plan.fewDimsTop ? plan.fewDimsTop->bytes : 0;
            return plan;
        }
        if (c.direct == Direct::SortedLine) {
            plan.sortedLine = planSortedLine(p, c.maxScratch);
            plan.bytes = plan.sortedLine ? plan.sortedLine->bytes : 0;
            return plan;
        }
        if (c.direct == Direct::NearestFirst) {
            plan.nearest = planNearest(p, c.maxScratch);
            plan.bytes = plan.nearest ? plan.nearest->bytes : 0;
            return plan;
        }
        if (c.direct == Direct::FusedFirst) {
            plan.fused = planFused(p, c.maxScratch);
            plan.bytes = plan.fused ? plan.fused->bytes : 0;
            return plan;
        }
        plan.direct = planDirect(p, c.maxScratch);
        plan.bytes = plan.direct ? plan.direct->bytes : 0;
        return plan;
    }

    /// Without the data, which no plan reads.
    static FlatKnnProblem shapeOf(const CertifiedCase& c) {
        FlatKnnProblem p;
        p.metric = c.metric;
        p.metricArg = c.p;
        p.dataType = c.dataType;
        p.numVectors = c.n;
        p.numQueries = c.q;
        p.d = c.d;
        p.k = c.k;
        p.mode = c.mode;
        p.partVectors = c.partVectors;
        p.device = traitsOf(c);
        p.limits = c.limits.empty() ? nullptr : c.limits.data();
        p.numWithin = c.limits.empty() ? 0 : c.k;
        return p;
    }

    static FlatKnnPlan planOf(const CertifiedCase& c) {
        return planOf(c, shapeOf(c));
    }

    struct Result : KnnResult {
        unsigned long long repeated = 0;
        unsigned long long rescored = 0;
    };

    Result search(
            const CertifiedCase& c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries) {
        FlatKnnProblem p;
        p.metric = c.metric;
        p.dataType = c.dataType;
        p.numVectors = c.n;
        p.numQueries = c.q;
        p.d = c.d;
        p.k = c.k;
        p.mode = c.mode;
        p.partVectors = c.partVectors;
        p.idType = c.idType;
        p.device = traitsOf(c);
        p.metricArg = c.p;
        std::vector<uint32_t> bits((c.n + 31) / 32);
        for (int64_t i = 0; c.allowedOf > 0 && i < c.n; i += c.allowedOf) {
            bits[i / 32] |= 1u << i % 32;
        }
        const DeviceBuffer<uint32_t> allowed(bits);
        p.allowedBits = c.allowedOf > 0 ? allowed.data() : nullptr;
        std::vector<int32_t> ids;
        for (int64_t i = 0; c.allowedOf > 0 && i < c.n; i += c.allowedOf) {
            ids.push_back(int32_t(i));
        }
        ids.resize(ids.size() + std::max(c.holes, 0), -1);
        const DeviceBuffer<int32_t> list(ids);
        if (c.allowedOf > 0 && c.holes >= 0) {
            p.allowedIds = list.data();
            p.numAllowed = int64_t(ids.size());
        }
        std::vector<float> rounded = queries;
        roundAllTo(c.dataType, rounded);
        DeviceBuffer<uint8_t> deviceVectors(packAs(c.dataType, vectors));
        DeviceBuffer<uint8_t> deviceQueries(packAs(c.dataType, rounded));
        DeviceBuffer<float> exact(queries);
        DeviceBuffer<float> outDistances(c.q * c.k, 0xA5);
        DeviceBuffer<uint8_t> outIds(c.q * c.k * sizeOf(c.idType), 0xA5);
        DeviceBuffer<unsigned long long> counts(2, 0x00);
        p.vectors = deviceVectors.data();
        p.queries = deviceQueries.data();
        p.exactQueries = c.exactQueries ? exact.data() : nullptr;
        const DeviceBuffer<float> limits(c.limits);
        p.limits = c.limits.empty() ? nullptr : limits.data();
        p.numWithin = c.limits.empty() ? 0 : c.k;
        p.outDistances = outDistances.data();
        p.outIds = outIds.data();
        p.numRepeated = counts.data();
        p.numRescored = counts.data() + 1;
        DeviceBuffer<uint8_t> image;
        if (c.keptImage && p.metric != Metric::Cosine && canUseSearchImage(p)) {
            p.imageInOrder = c.imageInOrder;
            p.imageHasBytes = c.imageHasBytes;
            image = DeviceBuffer<uint8_t>(searchImageBytes(p), 0x7E);
            WorkspaceSlices slices({image.data(), image.size()});
            runSearchImage(p, SearchImage(p, slices), nullptr);
            p.searchImage = image.data();
        }
        const FlatKnnPlan plan = planOf(c, p);
        DeviceBuffer<uint8_t> scratch(plan.bytes);
        runFlatKnn(
                plan, p, {scratch.data(), scratch.size()}, handle(), nullptr);
        Result result;
        result.distances = outDistances.download();
        result.ids = unpackIds(c.idType, outIds.download());
        result.repeated = counts.download()[0];
        result.rescored = counts.download()[1];
        return result;
    }

    void check(
            const CertifiedCase& c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries,
            const KnnResult& result,
            int64_t most = 16) {
        // What is not allowed is as good as not there.
        std::vector<float> seen = vectors;
        for (int64_t i = 0; c.allowedOf > 0 && i < c.n; ++i) {
            if (i % c.allowedOf != 0) {
                std::fill_n(seen.begin() + i * c.d, c.d, std::nanf(""));
            }
        }
        for (int64_t i = 0; i < std::min(c.q, most); ++i) {
            const int64_t row = c.q <= most ? i : i * (c.q - 1) / (most - 1);
            ASSERT_TRUE(isCanonical(
                    canonicalTopK(
                            c.metric,
                            c.p,
                            queries.data() + row * c.d,
                            seen.data(),
                            c.n,
                            c.d,
                            c.k),
                    isSimilarity(c.metric),
                    result.distances.data() + row * c.k,
                    result.ids.data() + row * c.k,
                    c.k))
                    << "query " << row << ", " << c.describe();
        }
    }

    Result expectCanonical(const CertifiedCase& c, Hard kind) {
        SCOPED_TRACE(c.describe() + " data " + std::to_string(int(kind)));
        std::vector<float> vectors = makeHard(kind, c.n, c.d, 1);
        std::vector<float> queries = makeHard(kind, c.q, c.d, 2);
        roundAllTo(c.dataType, vectors);
        if (!c.exactQueries) {
            roundAllTo(c.dataType, queries);
        }
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result);
        return result;
    }
};

} // namespace faiss_bits::test
