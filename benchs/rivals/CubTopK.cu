/// Rival cub_topk: cub::DeviceTopK, which leaves the k in no order, and CUB's
/// sort of the k, so that the result is that of the others. One row a call.
/// A shared object of its own: it is compiled with a newer CCCL than the
/// toolkit's.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cub/device/device_topk.cuh>
#include <cuda/iterator>

#include "benchs/common/DeviceData.h"
#include "benchs/rivals/CubSortRows.cuh"
#include "benchs/rivals/SelectMethod.h"

namespace faiss_bits::bench {

namespace {

/// The selection for one type of keys, with its memory.
struct TopK {
    virtual ~TopK() = default;
    virtual void run(const void* keys, void* outKeys, void* outIds) = 0;
};

template <class Key>
class TopKOf : public TopK {
   public:
    explicit TopKOf(const SelectShape& shape)
            : shape_(shape),
              sort_(shape.rows, shape.k),
              keys_(shape.rows * shape.k),
              ids_(shape.rows * shape.k) {
        size_t bytes = 0;
        select(nullptr, bytes, nullptr, nullptr, nullptr);
        selectScratch_ = DeviceArray<uint8_t>(bytes);
        sortScratch_ = DeviceArray<uint8_t>(sort_.bytes());
    }

    void run(const void* keys, void* outKeys, void* outIds) override {
        const Key* from = static_cast<const Key*>(keys);
        for (int64_t row = 0; row < shape_.rows; ++row) {
            size_t bytes = selectScratch_.size();
            select(selectScratch_.data(),
                   bytes,
                   from + row * shape_.cols,
                   keys_.data() + row * shape_.k,
                   ids_.data() + row * shape_.k);
        }
        sort_.sort(
                sortScratch_.data(),
                sortScratch_.size(),
                {keys_.data(),
                 static_cast<Key*>(outKeys),
                 ids_.data(),
                 static_cast<uint32_t*>(outIds),
                 shape_.k},
                nullptr);
    }

   private:
    void select(
            void* scratch,
            size_t& bytes,
            const Key* keys,
            Key* outKeys,
            uint32_t* outIds) {
        const auto requirements = cuda::execution::require(
                cuda::execution::determinism::not_guaranteed,
                cuda::execution::output_ordering::unsorted);
        const auto environment = cuda::std::execution::env{
                cuda::stream_ref{cudaStream_t{nullptr}}, requirements};
        BITS_CUDA_CHECK(cub::DeviceTopK::MinPairs(
                scratch,
                bytes,
                keys,
                outKeys,
                cuda::counting_iterator<uint32_t>(0),
                outIds,
                uint32_t(shape_.cols),
                uint32_t(shape_.k),
                environment));
    }

    SelectShape shape_;
    CubSortRows<Key> sort_;
    DeviceArray<Key> keys_;
    DeviceArray<uint32_t> ids_;
    DeviceArray<uint8_t> selectScratch_;
    DeviceArray<uint8_t> sortScratch_;
};

class CubTopK : public SelectMethod {
   public:
    std::string name() const override {
        return "cub_topk";
    }

    std::pair<std::string, std::string> version() const override {
        return {"cub_topk", cubVersion()};
    }

    std::string refusal(const SelectShape& shape) const override {
        return shape.rows > kMaxRows   ? "one row a call: for few rows"
                : shape.k > shape.cols ? "k is above cols"
                                       : "";
    }

    void prepare(const SelectShape& shape) override {
        topK_.reset();
        if (shape.type == DataType::Float32) {
            topK_ = std::make_unique<TopKOf<float>>(shape);
        } else if (shape.type == DataType::Float16) {
            topK_ = std::make_unique<TopKOf<__half>>(shape);
        } else {
            topK_ = std::make_unique<TopKOf<__nv_bfloat16>>(shape);
        }
    }

    void run(const void* keys, void* outKeys, void* outIds) override {
        topK_->run(keys, outKeys, outIds);
    }

    void release() override {
        topK_.reset();
    }

    IdType idType() const override {
        return IdType::Int32;
    }

   private:
    static constexpr int64_t kMaxRows = 1024;
    std::unique_ptr<TopK> topK_;
};

} // namespace

__attribute__((visibility("default"))) void addCubTopK(SelectMethods& rivals) {
    rivals.push_back(std::make_unique<CubTopK>());
}

} // namespace faiss_bits::bench
