/// What a search is expected to do against what it does, on streams without a
/// GPU: its pages, and the temporary memory that is left for its scratch. Of
/// the search all is here but its kernels.

#include <random>

#include <gtest/gtest.h>

#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/flat/SearchReport.h"
#include "tests/flat/FakeResources.h"

namespace faiss_bits::test {
namespace {

using namespace gpu::detail;
using gpu::GpuSearchPlan;

/// FAISS's temporary memory: a stack, whose requests are rounded up, and what
/// does not fit comes from elsewhere.
class StackResources : public FakeResources {
   public:
    explicit StackResources(size_t bytes) : FakeResources(0), left_(bytes) {}

    void* allocMemory(const faiss::gpu::AllocRequest& request) override {
        const size_t bytes = (request.size + 255) / 256 * 256;
        if (request.space == faiss::gpu::MemorySpace::Temporary &&
            bytes <= left_) {
            left_ -= bytes;
        }
        return FakeResources::allocMemory(request);
    }
    size_t getTempMemoryAvailable(int) const override {
        return left_;
    }

   private:
    size_t left_;
};

struct SearchCase {
    idx_t n = 100000;
    idx_t queries = 1;
    int d = 32;
    int k = 10;
    DataType type = DataType::Float32;
    bool onHost = true;
    bool hasList = false;
    SearchMode mode = SearchMode::Certified;
    size_t memory = size_t(1536) << 20;
    size_t pageBytes = SIZE_MAX;
};

std::ostream& operator<<(std::ostream& out, const SearchCase& c) {
    return out << c.n << " x " << c.d << ", " << c.queries << " queries, k "
               << c.k << ", type " << int(c.type) << ", host " << c.onHost
               << ", list " << c.hasList << ", mode " << int(c.mode)
               << ", memory " << c.memory << ", pages " << c.pageBytes;
}

const float kAnything = 0;

FlatKnnProblem problemOf(const SearchCase& c) {
    FlatKnnProblem p;
    p.numVectors = c.n;
    p.numQueries = c.queries;
    p.batchQueries = c.queries;
    p.d = c.d;
    p.k = c.k;
    p.dataType = c.type;
    p.mode = c.mode;
    p.vectorNorms = p.greatestNorm = &kAnything;
    return p;
}

PageLimits limitsOf(const SearchCase& c) {
    PageLimits limits;
    limits.rows = c.queries;
    limits.workPerRow = searchWork(c.n, c.d, c.k);
    limits.pageBytes = c.pageBytes;
    if (c.type != DataType::Float32) {
        limits.scratchBytesPerRow = sizeOf(c.type) * c.d;
    }
    return limits;
}

FilterShape filterOf(const SearchCase& c) {
    FilterShape filter;
    if (c.hasList) {
        filter.hasBits = filter.hasIds = true;
        filter.numIds = c.n / 10;
        filter.bitBytes = size_t(c.n + 31) / 32 * 4;
        filter.listBytes = size_t(filter.numIds) * 4;
    }
    return filter;
}

/// The steps of a search, in their order, up to the plan of its first page.
struct Ran {
    FlatKnnPlan plan;
    ImageUse image = ImageUse::None;
    idx_t pages = 0;
    idx_t firstPage = 0;
    size_t taken = 0; // of the temporary memory, before the plan
};

Ran runSearch(const SearchCase& c, VectorFacts& facts) {
    StackResources resources(c.memory);
    const GpuContext context{&resources, 0, resources.getDefaultStream(0)};
    const size_t floats = size_t(c.queries) * std::max(c.d, 2 * c.k);
    std::vector<float> array(floats);
    if (!c.onHost) {
        fake::markDevice(array.data(), floats * sizeof(float));
    }
    const FilterShape filter = filterOf(c);
    TemporaryMemory bits, list;
    if (filter.hasBits) {
        bits = allocTemporary(context, filter.bitBytes);
        list = allocTemporary(context, filter.listBytes);
    }
    Ran ran;
    PagedCall call(context);
    call.input("x", array.data(), sizeof(float) * c.d);
    call.output("distances", array.data(), sizeof(float) * c.k);
    call.output("labels", array.data(), sizeof(idx_t) * c.k);
    call.run(limitsOf(c), [&](const Page& page) {
        if (ran.pages++ > 0) {
            return;
        }
        ran.firstPage = page.rows;
        FlatKnnProblem p = problemOf(c);
        p.numQueries = page.rows;
        filter.expectFor(p);
        ran.image = facts.expectFor(p);
        TemporaryMemory rounded;
        if (c.type != DataType::Float32) {
            rounded = allocTemporary(
                    context, size_t(page.rows) * c.d * sizeOf(c.type));
            p.exactQueries =
                    c.mode == SearchMode::Certified ? &kAnything : nullptr;
        }
        ran.taken = c.memory - resources.getTempMemoryAvailable(0);
        ran.plan = planFlatKnn(p, scratchBudget(context));
    });
    fake::finishAll();
    return ran;
}

GpuSearchPlan expect(const SearchCase& c, const VectorFacts& facts) {
    StackResources resources(c.memory);
    const GpuContext context{&resources, 0, resources.getDefaultStream(0)};
    ExpectedSearch search;
    search.problem = problemOf(c);
    search.limits = limitsOf(c);
    search.filter = filterOf(c);
    search.facts = &facts;
    search.hostArrays = c.onHost;
    const GpuSearchPlan plan = planSearch(context, search, {});
    EXPECT_EQ(resources.getTempMemoryAvailable(0), c.memory) << c;
    return plan;
}

void expectSame(const SearchCase& c) {
    SCOPED_TRACE(::testing::Message() << c);
    fake::reset(fake::Schedule::Eager, 1);
    VectorFacts facts(true);
    const GpuSearchPlan expected = expect(c, facts);
    const Ran ran = runSearch(c, facts);
    EXPECT_EQ(expected.pages, ran.pages);
    EXPECT_EQ(expected.queriesPerPage, ran.firstPage);
    EXPECT_EQ(expected.scratchBytes, ran.plan.bytes);
    EXPECT_EQ(expected.details, ran.plan.toString());
    EXPECT_EQ(expected.searchImage == "make", ran.image == ImageUse::Make);
    EXPECT_GT(expected.expectedMs, 0);
}

/// Where the memory is just enough for the plan of much of it, and where it is
/// just too little: what is taken before counts to the byte.
bool expectSameAtTheEdge(SearchCase c) {
    c.memory = size_t(1) << 40;
    fake::reset(fake::Schedule::Eager, 1);
    VectorFacts facts(true);
    const Ran ran = runSearch(c, facts);
    if (ran.plan.bytes <= size_t(32) << 20) {
        return false; // always there
    }
    c.memory = ran.taken + WorkspaceSlices::roundUp(ran.plan.bytes) +
            TemporaryMemory::kMore;
    expectSame(c);
    EXPECT_EQ(runSearch(c, facts).plan.bytes, ran.plan.bytes) << c;
    c.memory -= WorkspaceSlices::kAlignment;
    expectSame(c);
    EXPECT_LT(runSearch(c, facts).plan.bytes, ran.plan.bytes) << c;
    return true;
}

TEST(SearchPlan, IsWhatTheSearchDoes) {
    for (idx_t queries : {1, 10, 300, 20000}) {
        for (bool onHost : {true, false}) {
            for (DataType type : {DataType::Float32, DataType::Float16}) {
                for (size_t memory :
                     {size_t(0), size_t(40) << 20, size_t(1536) << 20}) {
                    SearchCase c;
                    c.queries = queries;
                    c.onHost = onHost;
                    c.type = type;
                    c.memory = memory;
                    expectSame(c);
                    c.hasList = true;
                    expectSame(c);
                    c.mode = SearchMode::Plain;
                    expectSame(c);
                }
            }
        }
    }
}

TEST(SearchPlan, IsWhatRandomSearchesDo) {
    std::mt19937 random(7);
    const auto upTo = [&](double most) {
        return idx_t(std::exp(
                std::uniform_real_distribution<>(0, std::log(most))(random)));
    };
    int edges = 0;
    for (int i = 0; i < 300; ++i) {
        SearchCase c;
        c.n = upTo(3e6);
        c.queries = upTo(20000);
        c.d = int(upTo(300));
        c.k = int(upTo(300));
        c.type = DataType(random() % 3);
        c.onHost = random() % 2;
        c.hasList = random() % 3 == 0;
        c.mode = SearchMode(random() % 2);
        c.memory = random() % 2 ? size_t(upTo(1e9)) : c.memory;
        c.pageBytes = random() % 2 ? size_t(upTo(1e7)) : c.pageBytes;
        expectSame(c);
        edges += expectSameAtTheEdge(c);
    }
    EXPECT_GT(edges, 50);
}

TEST(SearchPlan, SaysWhatAnImageCosts) {
    fake::reset(fake::Schedule::Eager, 1);
    SearchCase c;
    c.n = 1 << 20;
    c.d = 64; // no 8 bits
    c.queries = 1000;
    c.onHost = false;
    VectorFacts facts(true);
    const GpuSearchPlan makes = expect(c, facts);
    EXPECT_EQ(makes.searchImage, "make");
    EXPECT_EQ(makes.method, "fused_tensor");
    const VectorFacts never(false);
    const GpuSearchPlan without = expect(c, never);
    EXPECT_EQ(without.searchImage, "none");
    // Made in the search's own scratch, or kept: the same work.
    EXPECT_NEAR(without.expectedMs, makes.expectedMs, 1e-3);
    EXPECT_GT(without.scratchBytes, makes.scratchBytes);
    c.queries = 10;
    EXPECT_EQ(expect(c, facts).searchImage, "not_yet");
    EXPECT_LT(expect(c, facts).expectedMs, makes.expectedMs);
}

/// An image that is kept has 8 bits as well, which are scanned in less time.
TEST(SearchPlan, ExpectsLessWithEightBits) {
    fake::reset(fake::Schedule::Eager, 1);
    SearchCase c;
    c.n = 1 << 20;
    c.d = 128;
    c.queries = 10240;
    c.onHost = false;
    const GpuSearchPlan kept = expect(c, VectorFacts(true));
    const GpuSearchPlan without = expect(c, VectorFacts(false));
    EXPECT_LT(kept.expectedMs, 0.9 * without.expectedMs);
}

TEST(SearchPlan, PrintsOneLine) {
    fake::reset(fake::Schedule::Eager, 1);
    SearchCase c;
    c.queries = 20000;
    c.k = 300;
    const VectorFacts facts(true);
    const GpuSearchPlan plan = expect(c, facts);
    EXPECT_GT(plan.pages, 1);
    const std::string text = plan.toString();
    EXPECT_EQ(text.find(plan.method + ", "), 0) << text;
    for (const std::string& part :
         {std::to_string(plan.pages) + " pages of " +
                  std::to_string(plan.queriesPerPage) + " queries",
          "tiles of " + std::to_string(plan.tileQueries) + " queries",
          std::string("expected "),
          "(" + plan.details + ")"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << ": " << text;
    }
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_EQ(GpuSearchPlan().toString().find("none, 0 pages"), 0);
}

TEST(ExpectedMemory, IsAStackOfRoundedRequests) {
    constexpr size_t kMiB = size_t(1) << 20;
    // Each has more, so that it begins at a multiple of 256 bytes.
    constexpr size_t kMore = TemporaryMemory::kMore;
    ExpectedMemory memory(100 * kMiB + 300);
    EXPECT_EQ(memory.scratchBudget(), 100 * kMiB + 256 - kMore);
    memory.take(1);
    EXPECT_EQ(memory.scratchBudget(), 100 * kMiB - 2 * kMore);
    memory.take(200 * kMiB); // comes from elsewhere
    EXPECT_EQ(memory.scratchBudget(), 100 * kMiB - 2 * kMore);
    memory.take(0);
    memory.take(60 * kMiB);
    EXPECT_EQ(memory.scratchBudget(), 40 * kMiB - 3 * kMore);
    memory.take(30 * kMiB);
    EXPECT_EQ(memory.scratchBudget(), 32 * kMiB); // that is always there
}

} // namespace
} // namespace faiss_bits::test
