/// Rival cub_sort: CUB's sort of whole rows, of which the first k are the
/// answer. The CUB is the toolkit's.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "benchs/common/DeviceData.h"
#include "benchs/rivals/CubSortRows.cuh"
#include "benchs/rivals/SelectMethod.h"

namespace faiss_bits::bench {

namespace {

/// A sort for one type of keys, with its memory.
struct Sort {
    virtual ~Sort() = default;
    virtual void run(const void* keys) = 0;
    virtual const void* sortedKeys() const = 0;
    virtual const void* sortedIds() const = 0;
};

template <class Key>
class SortOf : public Sort {
   public:
    SortOf(int64_t rows, int64_t cols)
            : sort_(rows, cols), keys_(rows * cols), ids_(rows * cols) {
        // Where rows are sorted one by one, one row of columns serves all.
        valueStride_ = sort_.isRowByRow() ? 0 : cols;
        const int64_t count = valueStride_ ? rows * cols : cols;
        columns_ = DeviceArray<uint32_t>(count);
        fillColumns(columns_.data(), count, cols);
        scratch_ = DeviceArray<uint8_t>(sort_.bytes());
    }

    void run(const void* keys) override {
        sort_.sort(
                scratch_.data(),
                scratch_.size(),
                {static_cast<const Key*>(keys),
                 keys_.data(),
                 columns_.data(),
                 ids_.data(),
                 valueStride_},
                nullptr);
    }

    const void* sortedKeys() const override {
        return keys_.data();
    }

    const void* sortedIds() const override {
        return ids_.data();
    }

   private:
    CubSortRows<Key> sort_;
    int64_t valueStride_ = 0;
    DeviceArray<Key> keys_;
    DeviceArray<uint32_t> ids_;
    DeviceArray<uint32_t> columns_;
    DeviceArray<uint8_t> scratch_;
};

class CubSort : public SelectMethod {
   public:
    std::string name() const override {
        return "cub_sort";
    }

    std::pair<std::string, std::string> version() const override {
        return {"cub", cubVersion()};
    }

    std::string refusal(const SelectShape& shape) const override {
        size_t free = 0;
        size_t total = 0;
        BITS_CUDA_CHECK(cudaMemGetInfo(&free, &total));
        // Keys and columns, in and out, and as much again for the sort.
        const int64_t needed =
                shape.rows * shape.cols * int64_t(sizeOf(shape.type) + 4) * 2;
        return sort_ || size_t(needed) < free ? "" : "too little memory";
    }

    bool ignoresK() const override {
        return true;
    }

    void prepare(const SelectShape& shape) override {
        if (sort_ && shape_.rows == shape.rows && shape_.cols == shape.cols &&
            shape_.type == shape.type) {
            shape_ = shape;
            return;
        }
        sort_.reset();
        shape_ = shape;
        if (shape.type == DataType::Float32) {
            sort_ = std::make_unique<SortOf<float>>(shape.rows, shape.cols);
        } else if (shape.type == DataType::Float16) {
            sort_ = std::make_unique<SortOf<__half>>(shape.rows, shape.cols);
        } else {
            sort_ = std::make_unique<SortOf<__nv_bfloat16>>(
                    shape.rows, shape.cols);
        }
    }

    void run(const void* keys, void*, void*) override {
        sort_->run(keys);
    }

    void collect(void* outKeys, void* outIds) override {
        copyFirst(outKeys, sort_->sortedKeys(), sizeOf(shape_.type));
        copyFirst(outIds, sort_->sortedIds(), sizeOf(idType()));
    }

    IdType idType() const override {
        return IdType::Int32;
    }

    void release() override {
        sort_.reset();
    }

   private:
    /// The first k of every row.
    void copyFirst(void* to, const void* from, size_t size) const {
        BITS_CUDA_CHECK(cudaMemcpy2D(
                to,
                shape_.k * size,
                from,
                shape_.cols * size,
                shape_.k * size,
                shape_.rows,
                cudaMemcpyDeviceToDevice));
    }

    SelectShape shape_;
    std::unique_ptr<Sort> sort_;
};

} // namespace

void addCubSort(SelectMethods& rivals) {
    rivals.push_back(std::make_unique<CubSort>());
}

} // namespace faiss_bits::bench
