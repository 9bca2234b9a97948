/// Direct searches of lists with a test of ids in place of bits
/// (IvfLists::idTest), each way of them forced.

#include <algorithm>
#include <string>

#include "tests/common/ExpectError.h"
#include "tests/ivf/DirectHarness.h"

namespace faiss_bits::test {
namespace {

class IvfIdTests : public GpuTest {
   protected:
    static void expectDirect(const KernelCase& c) {
        const KernelLists lists(c);
        const IvfKnnProblem p = lists.plainProblem();
        for (bool shared : {false, true}) {
            const IvfKnnPlan plan = planOf(p, false, shared);
            if (!plan.direct) {
                // Codes that queries cannot share, or one query.
                ASSERT_TRUE(shared) << c;
                continue;
            }
            SCOPED_TRACE(
                    testing::Message()
                    << (shared ? "shared" : "direct") << " filter "
                    << int(c.filter) << " inverted " << c.inverted);
            lists.expectExact(lists.run(plan, p));
            // Whatever the scratch holds.
            lists.expectExact(lists.run(plan, p, 0));
        }
    }

    /// Both kinds of tests, and not of both.
    static void expectTests(KernelCase c) {
        for (KernelFilter filter :
             {KernelFilter::IdBits, KernelFilter::IdRange}) {
            if (filter == KernelFilter::IdBits && c.idKind == ListIds::Places) {
                continue; // too many bits
            }
            for (bool inverted : {false, true}) {
                c.filter = filter;
                c.inverted = inverted;
                expectDirect(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
};

TEST_F(IvfIdTests, SmallShares) {
    for (double selected : {0.0, 0.002, 0.1, 0.9}) {
        for (int d : {12, 131}) {
            KernelCase c = someCase(uint32_t(selected * 1000) + d);
            c.selected = selected;
            c.d = d;
            expectTests(c);
        }
    }
}

TEST_F(IvfIdTests, SmallKindsOfIds) {
    for (ListIds kind : {ListIds::Given64, ListIds::Given32, ListIds::Places}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            KernelCase c = someCase(uint32_t(kind) + 31);
            c.selected = 0.4;
            c.idKind = kind;
            c.metric = metric;
            c.lengths64 = kind != ListIds::Given32;
            c.fill = ListFill::Integers; // ties
            c.d = 4;
            expectTests(c);
        }
    }
}

TEST_F(IvfIdTests, SmallCodings) {
    for (ListCoding coding :
         {ListCoding::Float16,
          ListCoding::Scalar8,
          ListCoding::Scalar6,
          ListCoding::Scalar4,
          ListCoding::Product}) {
        for (ListLayout layout : {ListLayout::Interleaved, ListLayout::Rows}) {
            if (coding == ListCoding::Scalar6 && layout == ListLayout::Rows) {
                continue; // there are none
            }
            for (int d : {16, 136, 256}) {
                KernelCase c = someCase(uint32_t(coding) * 10 + d);
                c.selected = 0.2;
                c.coding = coding;
                c.layout = layout;
                c.numParts = d / 2;
                c.d = d;
                expectTests(c);
            }
        }
    }
}

TEST_F(IvfIdTests, SmallLists) {
    // At both sides of groups of 32.
    for (int length : {0, 1, 31, 32, 33, 256, 257}) {
        KernelCase c = someCase(uint32_t(length) + 3);
        c.lengths = {0, length, length, 0, 1};
        c.nprobe = 5;
        c.k = 40;
        c.d = 9;
        c.selected = 0.5;
        expectTests(c);
    }
}

TEST_F(IvfIdTests, PartsOfABlock) {
    // At both sides of 32 groups, of which a block looks up ids together, and
    // of twice as many; of one block and of some.
    for (ListCoding coding : {ListCoding::Float32, ListCoding::Scalar8}) {
        for (int groups : {31, 32, 33, 63, 64, 65, 66, 129}) {
            for (int multiprocessors : {1, 5}) {
                KernelCase c = someCase(uint32_t(groups + multiprocessors));
                c.coding = coding;
                c.q = 4; // a block each, of one multiprocessor
                c.lengths = {groups * 32 - 7, 40, groups * 16};
                c.nprobe = 2;
                c.d = groups % 2 ? 40 : 130;
                c.selected = 0.3;
                c.multiprocessors = multiprocessors;
                expectTests(c);
            }
        }
    }
}

TEST_F(IvfIdTests, BitsInPartsOfABlock) {
    // Bits that are there come by the same words.
    for (ListCoding coding : {ListCoding::Float32, ListCoding::Float16}) {
        for (int groups : {32, 33, 65, 200}) {
            for (double selected : {0.01, 0.6}) {
                KernelCase c = someCase(uint32_t(groups));
                c.coding = coding;
                c.q = 4;
                c.lengths = {groups * 32 - 7, 40, groups * 16};
                c.nprobe = 2;
                c.d = 40;
                c.selected = selected;
                c.multiprocessors = 1;
                expectDirect(c);
            }
        }
    }
}

TEST_F(IvfIdTests, UnevenAndManyLists) {
    // Words of lists lie side by side, or where sums say, and pairs are sorted
    // by one block or by some.
    for (const auto& [lists, longest] :
         {std::pair(700, 40), std::pair(4200, 3), std::pair(300, 9000)}) {
        KernelCase c = someCase(uint32_t(lists));
        c.lengths = unevenLengths(lists, 40, c.seed);
        c.lengths[lists / 3] = longest;
        c.q = 70;
        c.nprobe = 60;
        c.d = 7;
        c.selected = 0.25;
        expectTests(c);
    }
}

TEST_F(IvfIdTests, BitsOfTheListsThatAreProbed) {
    // Lists of more vectors, of which few are probed: bits of those alone.
    // The longest of them is so long that words of lists lie where sums say:
    // 400 times its words are more than 4 x 65,936.
    for (int longest : {40, 30000}) {
        KernelCase c = someCase(uint32_t(longest));
        c.lengths = unevenLengths(400, 40, c.seed);
        c.lengths[123] = longest;
        c.q = 20;
        c.nprobe = 3;
        c.d = 7;
        c.selected = 0.25;
        for (KernelFilter filter :
             {KernelFilter::IdBits, KernelFilter::IdRange}) {
            c.filter = filter;
            const KernelLists lists(c);
            IvfKnnProblem p = lists.plainProblem();
            p.lists.numVectors = idx_t(1) << 21; // or more
            p.mostVectors = std::max<idx_t>(p.mostVectors, longest);
            const IvfKnnPlan plan = planOf(p, false, true);
            ASSERT_TRUE(plan.direct);
            lists.expectExact(lists.run(plan, p));
            lists.expectExact(lists.run(plan, p, 0));
        }
    }
}

TEST_F(IvfIdTests, ManyNeighbours) {
    for (int k : {128, 129, 1000}) {
        KernelCase c = someCase(uint32_t(k));
        c.lengths = unevenLengths(16, 700, c.seed);
        c.k = k;
        c.d = 6;
        c.fill = ListFill::Duplicates;
        c.selected = 0.3;
        expectTests(c);
    }
}

TEST_F(IvfIdTests, OthersRefuseIt) {
    KernelCase c = someCase(5);
    c.filter = KernelFilter::IdRange;
    c.selected = 0.5;
    const KernelLists lists(c);
    IvfKnnProblem p = lists.plainProblem();
    EXPECT_TRUE(throwsNaming(
            [&] { lists.run(planOfAll(p), p); }, "lists.idTest.kind"));
    p.lists.idTest.kind = ListIdTest::Kind::Bits;
    p.lists.idTest.numBytes = 1;
    EXPECT_TRUE(throwsNaming(
            [&] { lists.run(planOf(p, false, false), p); },
            "lists.idTest.bytes"));
}

} // namespace
} // namespace faiss_bits::test
