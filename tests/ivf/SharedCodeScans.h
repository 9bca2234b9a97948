#pragma once

#include <functional>
#include <initializer_list>

#include "tests/ivf/DirectHarness.h"

/// Searches that every scan of product codes which queries share is put
/// through.
namespace faiss_bits::test {

struct SharedCodeScans {
    std::function<KernelCase(uint32_t seed)> make; ///< of the shape to test
    std::function<void(const KernelCase&)> expect; ///< fatal where it is wrong

    void hardValues(
            std::initializer_list<ListFill> fills,
            std::initializer_list<int> ks) const {
        for (ListFill fill : fills) {
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                for (int k : ks) {
                    for (int length : {90, 1500}) {
                        KernelCase c = make(uint32_t(fill) + 10);
                        c.fill = fill;
                        c.metric = metric;
                        c.k = k;
                        c.lengths = unevenLengths(9, length, c.seed);
                        c.isResidual = k != 10;
                        expect(c);
                        if (testing::Test::HasFatalFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    }

    void filters(std::initializer_list<ListLayout> layouts) const {
        for (double selected : {0.0, 0.002, 0.1, 0.9}) {
            for (bool evenWords : {false, true}) {
                for (ListLayout layout : layouts) {
                    KernelCase c = make(uint32_t(selected * 1000) + 5);
                    c.layout = layout;
                    c.selected = selected;
                    c.evenWords = evenWords;
                    expect(c);
                }
            }
        }
    }

    /// Lists begin anywhere, and ids are of every kind.
    void places() const {
        for (int shift : {0, 1, 2, 4, 8}) {
            for (ListIds kind :
                 {ListIds::Given64, ListIds::Given32, ListIds::Places}) {
                KernelCase c = make(uint32_t(shift) + 7);
                c.listShift = shift;
                c.idKind = kind;
                expect(c);
            }
        }
    }

    /// More groups of 32 within the limit than the finish has room for: where
    /// many vectors are equal, and where none has an estimate.
    void manyGroups(std::initializer_list<int> ks) const {
        for (ListFill fill :
             {ListFill::Equal, ListFill::Duplicates, ListFill::NotFinite}) {
            for (int k : ks) {
                KernelCase c = make(uint32_t(k));
                c.fill = fill;
                c.metric = k % 2 ? Metric::InnerProduct : Metric::L2;
                c.k = k;
                c.q = 2;
                c.nprobe = 3;
                c.lengths = {
                        k <= 128           ? 20000
                                : k <= 512 ? 70000
                                           : 140000,
                        0,
                        900};
                expect(c);
                if (testing::Test::HasFatalFailure()) {
                    return;
                }
            }
        }
    }

    /// More neighbours than there are, and fewer.
    void neighbours(std::initializer_list<int> ks) const {
        for (int k : ks) {
            for (int length : {4, 40, 600, 5000}) {
                for (ListFill fill : {ListFill::Uniform, ListFill::Integers}) {
                    KernelCase c = make(uint32_t(k + length));
                    c.fill = fill;
                    c.q = 2;
                    c.k = k;
                    c.lengths = unevenLengths(8, length, c.seed);
                    expect(c);
                    if (testing::Test::HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
};

} // namespace faiss_bits::test
