#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>

#include <faiss/gpu/GpuIndexIVF.h>
#include <faiss/impl/IDSelector.h>

#include "tests/ivf/ProductHarness.h"
#include "tests/ivf/RangeHarness.h"
#include "tests/ivf/ScalarHarness.h"

/// Any of our indexes of inverted lists on the GPU, and on the host what its
/// lists should be.
namespace faiss_bits::test {

class ListModel {
   public:
    struct Entry {
        int64_t id;
        std::vector<uint8_t> code;
    };

    /// Of float32 vectors, with those of the data.
    explicit ListModel(
            std::shared_ptr<IvfData> data,
            faiss::gpu::GpuResourcesProvider* provider = sharedResources())
            : oracle(*data), kept_(data) {
        auto config = data->config();
        config.indicesOptions = faiss::gpu::INDICES_64_BIT;
        take(data->makeIndex(provider),
             std::make_unique<GpuIndexBitsIVFFlat>(
                     sharedResources(), data->cpu.get(), config),
             *data->cpu);
        decode_ = [d = data->c.d](const uint8_t* code, int, float* x) {
            std::memcpy(x, code, d * sizeof(float));
        };
    }

    /// Of codes.
    template <class Coded, class OnGpu, class Config>
    explicit ListModel(
            std::shared_ptr<CodedData<Coded, OnGpu, Config>> data,
            faiss::gpu::GpuResourcesProvider* provider = sharedResources())
            : oracle(data->oracle), kept_(data) {
        auto config = data->config();
        config.indicesOptions = faiss::gpu::INDICES_64_BIT;
        take(data->makeIndex(provider),
             std::make_unique<OnGpu>(
                     sharedResources(), data->coded.get(), config),
             *data->coded);
        decode_ = [data = data.get()](const uint8_t* code, int list, float* x) {
            decodeVector(*data->coded, code, x);
            const int d = data->c.d;
            for (int i = 0; data->coded->by_residual && i < d; ++i) {
                x[i] = x[i] + data->oracle.centroids[size_t(list) * d + i];
            }
        };
    }

    /// To index and model. What the codes of new vectors are is FAISS's to say:
    /// they are added to empty lists too, and read there.
    void add(const std::vector<int64_t>& ids, const std::vector<float>& x) {
        index->add_with_ids(int64_t(ids.size()), x.data(), ids.data());
        append(ids, x);
    }

    /// From both, by the ids that selectors know.
    void remove(const faiss::IDSelector& selector) {
        const int64_t removed = int64_t(index->remove_ids(selector));
        EXPECT_EQ(removed, drop([&](int list, int64_t place, int64_t id) {
                      return selector.is_member(selectorId(list, place, id));
                  }))
                << oracle.c;
    }

    /// In both.
    void update(const std::vector<int64_t>& ids, const std::vector<float>& x) {
        updateIndex(int64_t(ids.size()), ids.data(), x.data());
        updateModel(ids, x);
    }

    void updateModel(
            const std::vector<int64_t>& ids,
            const std::vector<float>& x) {
        std::vector<int64_t> before;
        for (const auto& list : lists) {
            before.push_back(int64_t(list.size()));
        }
        append(ids, x);
        const std::unordered_set<int64_t> leave(ids.begin(), ids.end());
        drop([&](int list, int64_t place, int64_t id) {
            return place < before[list] && leave.count(id) > 0;
        });
    }

    int64_t selectorId(int list, int64_t place, int64_t id) const {
        return oracle.c.indices == faiss::gpu::INDICES_IVF
                ? int64_t(list) << 32 | place
                : id;
    }

    int64_t size() const {
        int64_t all = 0;
        for (const auto& list : lists) {
            all += int64_t(list.size());
        }
        return all;
    }

    /// The decoded vectors by selectors' ids; of an id that is there more than
    /// once the first.
    std::unordered_map<int64_t, std::vector<float>> vectors() const {
        std::unordered_map<int64_t, std::vector<float>> all;
        for (int l = 0; l < int(lists.size()); ++l) {
            for (size_t i = 0; i < lists[l].size(); ++i) {
                std::vector<float> x(oracle.c.d);
                decode_(lists[l][i].code.data(), l, x.data());
                all.emplace(selectorId(l, int64_t(i), lists[l][i].id), x);
            }
        }
        return all;
    }

    std::vector<int64_t> selectorIds() const {
        std::vector<int64_t> ids;
        for (int l = 0; l < int(lists.size()); ++l) {
            for (size_t i = 0; i < lists[l].size(); ++i) {
                ids.push_back(selectorId(l, int64_t(i), lists[l][i].id));
            }
        }
        return ids;
    }

    /// The same codes and ids in the same places.
    void expectSameLists() const {
        ASSERT_EQ(index->ntotal, size()) << oracle.c;
        for (int l = 0; l < int(lists.size()); ++l) {
            const auto found = read(*index, l);
            ASSERT_EQ(found.size(), lists[l].size())
                    << "list " << l << " of " << oracle.c;
            for (size_t i = 0; i < found.size(); ++i) {
                ASSERT_EQ(found[i].code, lists[l][i].code)
                        << "list " << l << " place " << i << " of " << oracle.c;
                if (oracle.c.indices != faiss::gpu::INDICES_IVF) {
                    ASSERT_EQ(found[i].id, lists[l][i].id)
                            << "list " << l << " place " << i << " of "
                            << oracle.c;
                }
            }
        }
    }

    /// Makes the oracle's lists the model's, decoded.
    void toOracle() {
        for (int l = 0; l < int(lists.size()); ++l) {
            const size_t d = oracle.c.d;
            std::vector<float> x(lists[l].size() * d);
            std::vector<idx_t> ids;
            for (size_t i = 0; i < lists[l].size(); ++i) {
                decode_(lists[l][i].code.data(), l, x.data() + i * d);
                ids.push_back(lists[l][i].id);
            }
            oracle.cpu->invlists->resize(l, ids.size());
            oracle.cpu->invlists->update_entries(
                    l,
                    0,
                    ids.size(),
                    ids.data(),
                    reinterpret_cast<const uint8_t*>(x.data()));
        }
        oracle.cpu->ntotal = size();
    }

    void expectBatch(const std::vector<int64_t>& keys, bool onDevice) const {
        const size_t d = oracle.c.d;
        const auto all = vectors();
        std::vector<float> out(keys.size() * d, -1.0f);
        if (onDevice) {
            const DeviceBuffer<int64_t> deviceKeys(keys);
            const DeviceBuffer<float> found(int64_t(out.size()));
            index->reconstruct_batch(
                    int64_t(keys.size()), deviceKeys.data(), found.data());
            out = found.download();
        } else {
            index->reconstruct_batch(
                    int64_t(keys.size()), keys.data(), out.data());
        }
        for (size_t i = 0; i < keys.size(); ++i) {
            const std::vector<float> want = keys[i] == -1
                    ? std::vector<float>(d, 0.0f)
                    : all.at(keys[i]);
            for (size_t c = 0; c < d; ++c) {
                ASSERT_EQ(bitsOf(out[i * d + c]), bitsOf(want[c]))
                        << "component " << c << " of key " << keys[i] << " of "
                        << oracle.c;
            }
        }
    }

    static uint32_t bitsOf(float value) {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        return bits;
    }

    IvfData& oracle; ///< what it should find; lists after toOracle()
    std::unique_ptr<faiss::gpu::GpuIndexIVF> index;
    std::vector<std::vector<Entry>> lists;
    /// Methods that FAISS's base class does not have.
    std::function<void(int64_t, const int64_t*, const float*)> updateIndex;
    std::function<void()> reclaimMemory;

   private:
    template <class OnGpu>
    void take(
            std::unique_ptr<OnGpu> ours,
            std::unique_ptr<OnGpu> empty,
            const faiss::IndexIVF& cpu) {
        updateIndex = [ours = ours.get()](
                              int64_t n, const int64_t* ids, const float* x) {
            ours->update_vectors(n, ids, x);
        };
        reclaimMemory = [ours = ours.get()] { ours->reclaimMemory(); };
        index = std::move(ours);
        empty->reset();
        empty_ = std::move(empty);
        if (auto* product = dynamic_cast<const faiss::IndexIVFPQ*>(&cpu)) {
            const size_t bits = product->pq.M * product->pq.nbits % 8;
            lastByte_ = bits > 0 ? uint8_t((1 << bits) - 1) : 0xFF;
        }
        lists.resize(cpu.nlist);
        for (size_t l = 0; l < cpu.nlist; ++l) {
            const uint8_t* codes = cpu.invlists->get_codes(l);
            for (size_t i = 0; i < cpu.invlists->list_size(l); ++i) {
                lists[l].push_back(
                        {int64_t(cpu.invlists->get_ids(l)[i]),
                         {codes + i * cpu.code_size,
                          codes + (i + 1) * cpu.code_size}});
                lists[l].back().code.back() &= lastByte_;
            }
        }
    }

    std::vector<Entry> read(const faiss::gpu::GpuIndexIVF& from, int l) const {
        std::vector<Entry> entries(size_t(from.getListLength(l)));
        if (entries.empty()) {
            return entries;
        }
        const std::vector<uint8_t> codes = from.getListVectorData(l);
        const size_t bytes = codes.size() / entries.size();
        const bool hasIds = &from == empty_.get() ||
                oracle.c.indices != faiss::gpu::INDICES_IVF;
        const auto ids = hasIds ? from.getListIndices(l)
                                : std::vector<idx_t>(entries.size());
        for (size_t i = 0; i < entries.size(); ++i) {
            entries[i].id = int64_t(ids[i]);
            entries[i].code.assign(
                    codes.begin() + i * bytes, codes.begin() + (i + 1) * bytes);
            entries[i].code.back() &= lastByte_;
        }
        return entries;
    }

    void append(const std::vector<int64_t>& ids, const std::vector<float>& x) {
        empty_->reset();
        empty_->add_with_ids(int64_t(ids.size()), x.data(), ids.data());
        for (int l = 0; l < int(lists.size()); ++l) {
            for (Entry& entry : read(*empty_, l)) {
                lists[l].push_back(std::move(entry));
            }
        }
    }

    /// leaves(list, place, id). Into the first places that become free go the
    /// last of those that stay.
    template <class Leaves>
    int64_t drop(const Leaves& leaves) {
        int64_t dropped = 0;
        for (int l = 0; l < int(lists.size()); ++l) {
            std::vector<bool> leave;
            for (size_t i = 0; i < lists[l].size(); ++i) {
                leave.push_back(leaves(l, int64_t(i), lists[l][i].id));
            }
            const int64_t left = std::count(leave.begin(), leave.end(), false);
            int64_t last = int64_t(leave.size()) - 1;
            for (int64_t place = 0; place < left; ++place) {
                if (leave[place]) {
                    while (leave[last]) {
                        --last;
                    }
                    lists[l][place] = lists[l][last--];
                }
            }
            dropped += int64_t(leave.size()) - left;
            lists[l].resize(left);
        }
        return dropped;
    }

    std::shared_ptr<void> kept_;
    uint8_t lastByte_ = 0xFF; // the bits of codes in the last byte of a vector
    std::unique_ptr<faiss::gpu::GpuIndexIVF> empty_;
    std::function<void(const uint8_t*, int, float*)> decode_;
};

/// Calls body(model) with every class, type of code, size and layout, each with
/// some IndicesOptions; `c` has the rest. `all`: every type with all of them.
template <class Body>
void forEveryKind(IvfCase c, bool all, const Body& body) {
    constexpr faiss::gpu::IndicesOptions kIndices[] = {
            faiss::gpu::INDICES_64_BIT,
            faiss::gpu::INDICES_32_BIT,
            faiss::gpu::INDICES_CPU,
            faiss::gpu::INDICES_IVF};
    int turn = 0;
    const auto forIndices = [&](const char* name, const auto& make) {
        for (int i = 0; i < (all ? 4 : 1); ++i) {
            c.indices = kIndices[turn++ % 4];
            SCOPED_TRACE(testing::Message() << name << " " << c);
            auto data = make();
            using Data = std::decay_t<decltype(data)>;
            ListModel model(std::make_shared<Data>(std::move(data)));
            body(model);
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
    };
    for (bool interleaved : {true, false}) {
        c.interleaved = interleaved;
        for (int i = 0; i < (all ? 1 : 4); ++i) {
            forIndices("float32", [&] { return IvfData(c); });
        }
        for (const ScalarType& type : kScalarTypes) {
            for (bool byResidual : {false, true}) {
                if (interleaved || type.type != ScalarQuantizer::QT_6bit) {
                    forIndices(type.name, [&] {
                        return makeScalar(c, type.type, byResidual);
                    });
                }
            }
        }
        for (const ProductShape& shape : std::initializer_list<ProductShape>{
                     {12, 4, 8},
                     {12, 1, 8},
                     {12, 3, 4},
                     {12, 3, 5},
                     {12, 4, 6}}) {
            if (interleaved || shape.bits == 8) {
                forIndices("product", [&] { return makeProduct(c, shape); });
            }
        }
    }
}

} // namespace faiss_bits::test
