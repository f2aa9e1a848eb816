// Containers, printing, equality and hashing of run-time values.
#include "tensor/ivalue.h"

#include <cmath>
#include <unordered_map>

namespace prong {

IValue::IValue(DimsView dims) {
  std::vector<IValue> items(dims.begin(), dims.end());
  *this = list(std::move(items));
}

IValue::IValue(const std::vector<Tensor>& tensors) {
  std::vector<IValue> items(tensors.begin(), tensors.end());
  *this = list(std::move(items));
}

IValue IValue::tuple(std::vector<IValue> items) {
  return IValue(make_ref<TupleBox>(std::move(items)));
}
IValue IValue::list(std::vector<IValue> items) {
  return IValue(make_ref<ListBox>(std::move(items)));
}

const std::vector<IValue>& IValue::items() const {
  if (tag_ == Tag::kTuple) return tuple()->items;
  return list()->items;
}

Dims IValue::to_dims() const {
  Dims dims;
  for (const IValue& item : items()) dims.push_back(item.to_int());
  return dims;
}

std::vector<Tensor> IValue::to_tensors() const {
  std::vector<Tensor> tensors;
  tensors.reserve(items().size());
  for (const IValue& item : items()) tensors.push_back(item.to_tensor());
  return tensors;
}

void IValue::throw_tag(Tag expected) const {
  if (tag_ == Tag::kComplex &&
      (expected == Tag::kInt || expected == Tag::kFloat || expected == Tag::kBool))
    throw_error(ErrorKind::kRuntime, "value cannot be converted to type double without overflow");
  throw_internal(__FILE__, __LINE__, "value tag",
                 cat("expected ", name_of(expected), " but got ", name_of(tag_)));
}

std::string_view name_of(IValue::Tag tag) {
  switch (tag) {
  case IValue::Tag::kNone:
    return "None";
  case IValue::Tag::kBool:
    return "bool";
  case IValue::Tag::kInt:
    return "int";
  case IValue::Tag::kFloat:
    return "float";
  case IValue::Tag::kDType:
    return "dtype";
  case IValue::Tag::kTensor:
    return "Tensor";
  case IValue::Tag::kString:
    return "str";
  case IValue::Tag::kList:
    return "list";
  case IValue::Tag::kTuple:
    return "tuple";
  case IValue::Tag::kDict:
    return "dict";
  case IValue::Tag::kFuture:
    return "Future";
  case IValue::Tag::kObject:
    return "object";
  case IValue::Tag::kMeta:
    return "abstract Tensor";
  case IValue::Tag::kComplex:
    return "complex";
  }
  return "?";
}

// ── dictionaries ──

namespace {
struct HashIValue {
  size_t operator()(const IValue& v) const { return hash_of(v); }
};
struct EqualIValue {
  bool operator()(const IValue& a, const IValue& b) const { return equal(a, b); }
};
}  // namespace

struct DictBox::Index {
  std::unordered_map<IValue, size_t, HashIValue, EqualIValue> positions;
};

DictBox::DictBox() : index_(std::make_unique<Index>()) {}
DictBox::~DictBox() = default;

size_t DictBox::size() const { return entries_.size(); }

const IValue* DictBox::find(const IValue& key) const {
  const auto it = index_->positions.find(key);
  return it == index_->positions.end() ? nullptr : &entries_[it->second].second;
}

void DictBox::set(const IValue& key, IValue value) {
  const auto [it, inserted] = index_->positions.try_emplace(key, entries_.size());
  if (inserted)
    entries_.emplace_back(key, std::move(value));
  else
    entries_[it->second].second = std::move(value);
}

bool DictBox::erase(const IValue& key) {
  const auto it = index_->positions.find(key);
  if (it == index_->positions.end()) return false;
  const size_t at = it->second;
  index_->positions.erase(it);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at));
  for (auto& [unused, position] : index_->positions)
    if (position > at) --position;
  return true;
}

void DictBox::clear() {
  entries_.clear();
  index_->positions.clear();
}

const std::pair<IValue, IValue>& DictBox::entry(size_t i) const { return entries_[i]; }

// ── equality and hashing, by Python's rules ──

bool equal(const IValue& a, const IValue& b) {
  using Tag = IValue::Tag;
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return a.to_double() == b.to_double();
    return a.to_int() == b.to_int();
  }
  if (a.tag() != b.tag()) return false;
  switch (a.tag()) {
  case Tag::kNone:
    return true;
  case Tag::kDType:
    return a.to_dtype() == b.to_dtype();
  case Tag::kString:
    return a.to_string() == b.to_string();
  case Tag::kList:
  case Tag::kTuple: {
    const auto &x = a.items(), &y = b.items();
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (!equal(x[i], y[i])) return false;
    return true;
  }
  case Tag::kDict: {
    const DictBox &x = *a.dict(), &y = *b.dict();
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      const IValue* other = y.find(x.entry(i).first);
      if (!other || !equal(x.entry(i).second, *other)) return false;
    }
    return true;
  }
  case Tag::kMeta:
    return a.meta() == b.meta();
  case Tag::kComplex:
    return a.to_complex() == b.to_complex();
  default:
    return a.identity() == b.identity();
  }
}

size_t hash_of(const IValue& v) {
  using Tag = IValue::Tag;
  const auto mix = [](size_t h, size_t x) {
    return h ^ (x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2));
  };
  switch (v.tag()) {
  case Tag::kNone:
    return 0;
  case Tag::kBool:
  case Tag::kInt:
    return std::hash<double>()(static_cast<double>(v.to_int()));
  case Tag::kFloat:
    return std::hash<double>()(v.to_double());
  case Tag::kDType:
    return static_cast<size_t>(v.to_dtype());
  case Tag::kString:
    return std::hash<std::string>()(v.to_string());
  case Tag::kTuple: {
    size_t h = v.items().size();
    for (const IValue& item : v.items()) h = mix(h, hash_of(item));
    return h;
  }
  case Tag::kComplex:
    return mix(std::hash<double>()(v.to_complex().real()),
               std::hash<double>()(v.to_complex().imag()));
  case Tag::kList:
  case Tag::kDict:
    throw_error(ErrorKind::kType, cat("unhashable type: '", name_of(v.tag()), "'"));
  default:
    return std::hash<const void*>()(v.identity());
  }
}

// ── printing, as Python's repr ──

namespace {

std::string quote(const std::string& text) {
  const char mark =
      text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, mark);
  for (const char c : text) {
    switch (c) {
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\\':
      out += "\\\\";
      break;
    default:
      if (c == mark) out += '\\';
      out += c;
    }
  }
  return out + mark;
}

void repr_items(std::string& out, const std::vector<IValue>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += ", ";
    out += repr(items[i]);
  }
}

std::string repr_tuple(const TupleBox& t) {
  std::string out;
  if (t.names) {
    const auto dot = t.names->type_name.rfind('.');
    out = dot == std::string::npos ? t.names->type_name : t.names->type_name.substr(dot + 1);
    out += '(';
    for (size_t i = 0; i < t.items.size(); ++i)
      out += cat(i ? ", " : "", t.names->fields[i], "=", repr(t.items[i]));
    return out + ")";
  }
  out = "(";
  repr_items(out, t.items);
  return out + (t.items.size() == 1 ? ",)" : ")");
}

}  // namespace

std::string repr(const IValue& v) {
  using Tag = IValue::Tag;
  switch (v.tag()) {
  case Tag::kNone:
    return "None";
  case Tag::kBool:
    return v.to_bool() ? "True" : "False";
  case Tag::kInt:
    return std::to_string(v.to_int());
  case Tag::kFloat:
    return format_double(v.to_double());
  case Tag::kDType:
    return cat("torch.", v.to_dtype());
  case Tag::kTensor:
    return to_string(v.to_tensor());
  case Tag::kString:
    return quote(v.to_string());
  case Tag::kList: {
    std::string out = "[";
    repr_items(out, v.items());
    return out + "]";
  }
  case Tag::kTuple:
    return repr_tuple(*v.tuple());
  case Tag::kDict: {
    std::string out = "{";
    for (size_t i = 0; i < v.dict()->size(); ++i) {
      const auto& [key, value] = v.dict()->entry(i);
      out += cat(i ? ", " : "", repr(key), ": ", repr(value));
    }
    return out + "}";
  }
  case Tag::kFuture:
    return "<Future>";
  case Tag::kObject:
    return v.object()->describe();
  case Tag::kComplex: {
    const Complex128 z = v.to_complex();
    return cat("(", format_double(z.real()), std::signbit(z.imag()) ? "" : "+",
               format_double(z.imag()), "j)");
  }
  case Tag::kMeta:
    return cat("<Tensor ", v.meta().dtype, " ", v.meta().sizes, ">");
  }
  return "?";
}

}  // namespace prong
