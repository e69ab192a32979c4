/* Weighted sums of ristretto255 points: s_0*P_0 + ... + s_(n-1)*P_(n-1). VARIABLE TIME: public values only.
 *
 * Checks proofs faster than one multiplication after the other can; docs/adr/0017 says why it exists. No secret may
 * come here: branches and memory addresses depend on the scalars and the points. Loaded by group.py through ctypes.
 *
 * Sources:
 *   RFC 9496, "The ristretto255 and decaf448 Groups": sections 4.2 (square roots), 4.3.1 (decode), 4.3.2 (encode).
 *   Hisil, Wong, Carter, Dawson, "Twisted Edwards Curves Revisited" (2008): extended coordinates, a = -1; complete
 *     for this curve, so no case of equal, opposite or neutral points needs care.
 *   Bernstein, Duif, Lange, Schwabe, Yang, "High-speed high-security signatures" (2011): five limbs of 51 bits.
 *   Straus, "Addition chains of vectors" (1964): all products share their doublings; digits are width-5 NAFs.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef __SIZEOF_INT128__
#error "a 64-bit compiler with unsigned __int128 is needed; without this library libsodium does the work"
#endif

typedef unsigned __int128 wide;

enum {
    SIZE = 32,   /* bytes of an encoded point and of an encoded scalar */
    TABLE = 8,   /* the odd multiples P, 3P, .. 15P */
    DIGITS = 256,
    BLOCK = 32,  /* points that share their doublings: bounds the memory to about 50 KB, whatever n is */
    BAD_POINT = -1,
    BAD_SCALAR = -2
};

/* ---- The field of 2^255 - 19 ----
 *
 * limb[i] counts 2^(51*i). A value is "tight" with limbs below 2^51 + 2^13, which is what products are, and "loose"
 * with limbs below 2^54, which is what products take. Sums and differences in between are bounded at their lines.
 */

typedef struct {
    uint64_t limb[5];
} field;

static const uint64_t MASK = ((uint64_t)1 << 51) - 1;

static const field ZERO = {{0}};
static const field ONE = {{1}};
static const field D = {{0x34dca135978a3, 0x1a8283b156ebd, 0x5e7a26001c029, 0x739c663a03cbb, 0x52036cee2b6ff}};
static const field TWO_D = {{0x69b9426b2f159, 0x35050762add7a, 0x3cf44c0038052, 0x6738cc7407977, 0x2406d9dc56dff}};
static const field SQRT_M1 = {{0x61b274a0ea0b0, 0x0d5a5fc8f189d, 0x7ef5e9cbd0c60, 0x78595a6804c9e, 0x2b8324804fc1d}};
static const field INVSQRT_A_MINUS_D = { /* 1/sqrt(-1 - d) */
    {0x0fdaa805d40ea, 0x2eb482e57d339, 0x007610274bc58, 0x6510b613dc8ff, 0x786c8905cfaff}};

/* Tight + tight is below 2^53; any sum that stays below 2^54 will do. */
static inline void add(field *out, const field *a, const field *b) {
    for (int i = 0; i < 5; i++) out->limb[i] = a->limb[i] + b->limb[i];
}

/* a - b + 4p. b must be at most 4p in every limb (2^53 - 76); then nothing wraps, and the result is below a + 2^53. */
static inline void subtract(field *out, const field *a, const field *b) {
    out->limb[0] = a->limb[0] + 0x1fffffffffffb4 - b->limb[0];
    for (int i = 1; i < 5; i++) out->limb[i] = a->limb[i] + 0x1ffffffffffffc - b->limb[i];
}

/* Five columns below 77 * 2^108 < 2^115 to a tight value: each carry fits in 64 bits, and so does 19 times the last. */
static inline void carry(field *out, wide r0, wide r1, wide r2, wide r3, wide r4) {
    r1 += (uint64_t)(r0 >> 51);
    r2 += (uint64_t)(r1 >> 51);
    r3 += (uint64_t)(r2 >> 51);
    r4 += (uint64_t)(r3 >> 51);
    uint64_t low = ((uint64_t)r0 & MASK) + 19 * (uint64_t)(r4 >> 51); /* column 4 has no factor 19: r4 < 2^111 */
    out->limb[0] = low & MASK;
    out->limb[1] = ((uint64_t)r1 & MASK) + (low >> 51);
    out->limb[2] = (uint64_t)r2 & MASK;
    out->limb[3] = (uint64_t)r3 & MASK;
    out->limb[4] = (uint64_t)r4 & MASK;
}

/* Loose * loose is tight. */
static inline void multiply(field *out, const field *a, const field *b) {
    const uint64_t a0 = a->limb[0], a1 = a->limb[1], a2 = a->limb[2], a3 = a->limb[3], a4 = a->limb[4];
    const uint64_t b0 = b->limb[0], b1 = b->limb[1], b2 = b->limb[2], b3 = b->limb[3], b4 = b->limb[4];
    const uint64_t c1 = 19 * b1, c2 = 19 * b2, c3 = 19 * b3, c4 = 19 * b4; /* 2^255 = 19 */
    carry(out,
          (wide)a0 * b0 + (wide)a1 * c4 + (wide)a2 * c3 + (wide)a3 * c2 + (wide)a4 * c1,
          (wide)a0 * b1 + (wide)a1 * b0 + (wide)a2 * c4 + (wide)a3 * c3 + (wide)a4 * c2,
          (wide)a0 * b2 + (wide)a1 * b1 + (wide)a2 * b0 + (wide)a3 * c4 + (wide)a4 * c3,
          (wide)a0 * b3 + (wide)a1 * b2 + (wide)a2 * b1 + (wide)a3 * b0 + (wide)a4 * c4,
          (wide)a0 * b4 + (wide)a1 * b3 + (wide)a2 * b2 + (wide)a3 * b1 + (wide)a4 * b0);
}

/* The square of a loose value, tight: multiply(a, a) with equal terms joined. */
static inline void square(field *out, const field *a) {
    const uint64_t a0 = a->limb[0], a1 = a->limb[1], a2 = a->limb[2], a3 = a->limb[3], a4 = a->limb[4];
    const uint64_t d0 = 2 * a0, d1 = 2 * a1, c3 = 19 * a3, c4 = 19 * a4, e4 = 2 * c4;
    carry(out,
          (wide)a0 * a0 + (wide)a1 * e4 + (wide)(2 * a2) * c3,
          (wide)d0 * a1 + (wide)a2 * e4 + (wide)a3 * c3,
          (wide)d0 * a2 + (wide)a1 * a1 + (wide)a3 * e4,
          (wide)d0 * a3 + (wide)d1 * a2 + (wide)a4 * c4,
          (wide)d0 * a4 + (wide)d1 * a3 + (wide)a2 * a2);
}

/* a^(2^count) * b */
static void square_times_multiply(field *out, const field *a, int count, const field *b) {
    field t = *a;
    for (int i = 0; i < count; i++) square(&t, &t);
    multiply(out, &t, b);
}

/* a^((p-5)/8) = a^(2^252 - 3) of a loose value; t is a^(2^n - 1) for the n at the right. */
static void power_252_3(field *out, const field *a) {
    field t, t5, t10, t50;
    square_times_multiply(&t, a, 1, a);        /* 2 */
    square_times_multiply(&t, &t, 2, &t);      /* 4 */
    square_times_multiply(&t5, &t, 1, a);      /* 5 */
    square_times_multiply(&t10, &t5, 5, &t5);  /* 10 */
    square_times_multiply(&t, &t10, 10, &t10); /* 20 */
    square_times_multiply(&t, &t, 20, &t);     /* 40 */
    square_times_multiply(&t50, &t, 10, &t10); /* 50 */
    square_times_multiply(&t, &t50, 50, &t50); /* 100 */
    square_times_multiply(&t, &t, 100, &t);    /* 200 */
    square_times_multiply(&t, &t, 50, &t50);   /* 250 */
    square_times_multiply(out, &t, 2, a);
}

static uint64_t load(const uint8_t *from) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--) word = word << 8 | from[i];
    return word;
}

/* Reads 255 bits; the highest is ignored. */
static void from_bytes(field *out, const uint8_t bytes[SIZE]) {
    const uint64_t w0 = load(bytes), w1 = load(bytes + 8), w2 = load(bytes + 16), w3 = load(bytes + 24);
    *out = (field){{w0 & MASK, (w0 >> 51 | w1 << 13) & MASK, (w1 >> 38 | w2 << 26) & MASK,
                    (w2 >> 25 | w3 << 39) & MASK, w3 >> 12 & MASK}};
}

/* Writes the one representative below p of a loose value. */
static void to_bytes(uint8_t bytes[SIZE], const field *a) {
    field t;
    carry(&t, a->limb[0], a->limb[1], a->limb[2], a->limb[3], a->limb[4]); /* below 2p now */
    uint64_t high = 19; /* t + 19 reaches 2^255 just when t reaches p */
    for (int i = 0; i < 5; i++) high = (t.limb[i] + high) >> 51;
    t.limb[0] += 19 * high;
    for (int i = 0; i < 4; i++) {
        t.limb[i + 1] += t.limb[i] >> 51;
        t.limb[i] &= MASK;
    }
    t.limb[4] &= MASK; /* takes 2^255 off, if it is there */
    const uint64_t words[4] = {t.limb[0] | t.limb[1] << 51, t.limb[1] >> 13 | t.limb[2] << 38,
                               t.limb[2] >> 26 | t.limb[3] << 25, t.limb[3] >> 39 | t.limb[4] << 12};
    for (int i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(words[i / 8] >> 8 * (i % 8));
}

static int same(const field *a, const field *b) {
    uint8_t left[SIZE], right[SIZE];
    to_bytes(left, a);
    to_bytes(right, b);
    return memcmp(left, right, SIZE) == 0;
}

static int is_negative(const field *a) {
    uint8_t bytes[SIZE];
    to_bytes(bytes, a);
    return bytes[0] & 1;
}

/* -a of a value that is at most 4p in every limb; again such a value. */
static void negate(field *out, const field *a) { subtract(out, &ZERO, a); }

static void absolute(field *a) {
    if (is_negative(a)) negate(a, a);
}

/* SQRT_RATIO_M1(1, v) of RFC 9496 section 4.2 for a loose v: 1 and 1/sqrt(v), or 0 and something else. */
static int inverse_root(field *root, const field *v) {
    field t, check, minus;
    square(&t, v);
    multiply(&t, &t, v);      /* v^3 */
    square(root, &t);
    multiply(root, root, v);  /* v^7 */
    power_252_3(root, root);
    multiply(root, root, &t);
    square(&check, root);
    multiply(&check, &check, v);
    const int correct = same(&check, &ONE);
    negate(&minus, &ONE);
    const int flipped = same(&check, &minus);
    negate(&minus, &SQRT_M1); /* in this case v is no square, but RFC 9496 wants the root of v*sqrt(-1) */
    if (flipped || same(&check, &minus)) multiply(root, root, &SQRT_M1);
    absolute(root);
    return correct | flipped;
}

/* ---- The curve -x^2 + y^2 = 1 + d*x^2*y^2 ---- */

/* x = X/Z, y = Y/Z, and x*y = E*H/Z: the product T = E*H is only made where it is used. Coordinates are loose. */
typedef struct {
    field X, Y, Z, E, H;
} point;

/* A summand: Y+X, Y-X, 2Z, 2dT. */
typedef struct {
    field plus, minus, Z2, dT2;
} summand;

static const point NEUTRAL = {{{0}}, {{1}}, {{1}}, {{0}}, {{1}}};

static void prepare(summand *out, const point *p) {
    add(&out->plus, &p->Y, &p->X);
    subtract(&out->minus, &p->Y, &p->X);
    add(&out->Z2, &p->Z, &p->Z);
    multiply(&out->dT2, &p->E, &p->H);
    multiply(&out->dT2, &out->dT2, &TWO_D);
}

/* The last step of both formulas of section 4: X = EF, Y = GH, Z = FG, and T = EH for later. */
static inline void finish(point *p, const field *e, const field *f, const field *g, const field *h) {
    multiply(&p->X, e, f);
    multiply(&p->Y, g, h);
    multiply(&p->Z, f, g);
    p->E = *e;
    p->H = *h;
}

static inline void double_point(point *p) {
    field xx, yy, zz, e, f, g, h;
    square(&xx, &p->X);
    square(&yy, &p->Y);
    square(&zz, &p->Z);
    add(&h, &p->X, &p->Y);    /* 2^52 and a little */
    square(&e, &h);
    add(&h, &xx, &yy);        /* 2^52 and a little */
    subtract(&e, &e, &h);     /* 2^53 + 2^51 and a little */
    subtract(&g, &yy, &xx);   /* 2^53 + 2^51 and a little */
    add(&f, &zz, &zz);
    add(&f, &f, &xx);
    subtract(&f, &f, &yy);    /* 2Z^2 - G, in this order to stay below 2^53 + 2^52 + 2^51 and a little */
    finish(p, &e, &f, &g, &h); /* f and h have the other sign, so all coordinates have: the same point */
}

/* p + q, or p - q: -q has plus and minus exchanged and the other dT2. */
static inline void add_point(point *p, const summand *q, int negative) {
    field a, b, c, d, e, f, g, h;
    subtract(&a, &p->Y, &p->X);
    add(&b, &p->Y, &p->X);
    multiply(&a, &a, negative ? &q->plus : &q->minus);
    multiply(&b, &b, negative ? &q->minus : &q->plus);
    multiply(&c, &p->E, &p->H);
    multiply(&c, &c, &q->dT2);
    multiply(&d, &p->Z, &q->Z2);
    subtract(&e, &b, &a);
    add(&h, &b, &a);
    subtract(&f, &d, &c);
    add(&g, &d, &c);
    if (negative) finish(p, &e, &g, &f, &h);
    else finish(p, &e, &f, &g, &h);
}

/* RFC 9496 section 4.3.1. Gives 0, or BAD_POINT for all that is not the one encoding of a point. */
static int decode(point *p, const uint8_t bytes[SIZE]) {
    field s, ss, u1, u2, u2_squared, v, t, root;
    uint8_t canonical[SIZE];
    from_bytes(&s, bytes);
    to_bytes(canonical, &s);
    if (memcmp(bytes, canonical, SIZE) != 0 || bytes[0] & 1) return BAD_POINT;
    square(&ss, &s);
    subtract(&u1, &ONE, &ss);
    add(&u2, &ONE, &ss);
    square(&u2_squared, &u2);
    square(&v, &u1);
    multiply(&v, &v, &D);
    add(&v, &v, &u2_squared);
    negate(&v, &v);
    multiply(&t, &v, &u2_squared);
    int is_square = inverse_root(&root, &t);
    multiply(&p->X, &root, &u2);  /* den_x */
    multiply(&p->Y, &root, &p->X);
    multiply(&p->Y, &p->Y, &v);   /* den_y */
    multiply(&p->Y, &p->Y, &u1);
    add(&s, &s, &s);
    multiply(&p->X, &p->X, &s);
    absolute(&p->X);
    p->Z = ONE;
    p->E = p->X; /* T = X*Y */
    p->H = p->Y;
    multiply(&t, &p->X, &p->Y);
    return is_square && !is_negative(&t) && !same(&p->Y, &ZERO) ? 0 : BAD_POINT;
}

/* RFC 9496 section 4.3.2, for a point of double_point or add_point: X, Y and Z are tight. */
static void encode(uint8_t bytes[SIZE], const point *p) {
    field u1, u2, t, root, den1, den2, z_inverse, x = p->X, y = p->Y;
    add(&u1, &p->Z, &p->Y);
    subtract(&t, &p->Z, &p->Y);
    multiply(&u1, &u1, &t);
    multiply(&u2, &p->X, &p->Y);
    square(&t, &u2);
    multiply(&t, &t, &u1);
    inverse_root(&root, &t);
    multiply(&den1, &root, &u1);
    multiply(&den2, &root, &u2);
    multiply(&t, &p->E, &p->H);
    multiply(&z_inverse, &den1, &den2);
    multiply(&z_inverse, &z_inverse, &t);
    multiply(&t, &t, &z_inverse);
    if (is_negative(&t)) {
        multiply(&x, &p->Y, &SQRT_M1);
        multiply(&y, &p->X, &SQRT_M1);
        multiply(&den2, &den1, &INVSQRT_A_MINUS_D);
    }
    multiply(&t, &x, &z_inverse);
    if (is_negative(&t)) negate(&y, &y);
    subtract(&t, &p->Z, &y);
    multiply(&t, &t, &den2);
    absolute(&t);
    to_bytes(bytes, &t);
}

/* ---- Scalars ---- */

static const uint64_t ORDER[4] = {0x5812631a5cf5d3ed, 0x14def9dea2f79cd6, 0, 0x1000000000000000};

/* Width-5 non-adjacent form: sum of digit[i] * 2^i; digits are 0 or odd from -15 to 15, at most one in five is not 0.
 * Gives 0, or BAD_SCALAR for a number that is not below the order. */
static int recode(int8_t digit[DIGITS], const uint8_t bytes[SIZE]) {
    uint64_t word[5] = {load(bytes), load(bytes + 8), load(bytes + 16), load(bytes + 24), 0};
    int at = 3;
    while (at > 0 && word[at] == ORDER[at]) at--;
    if (word[at] >= ORDER[at]) return BAD_SCALAR;
    memset(digit, 0, DIGITS);
    unsigned carried = 0;
    for (int i = 0; i < DIGITS; i++) {
        uint64_t bits = word[i / 64] >> i % 64;
        if (i % 64 > 59) bits |= word[i / 64 + 1] << (64 - i % 64);
        const unsigned window = (unsigned)(bits & 31) + carried;
        if (window % 2 == 0) continue;
        carried = window > 16;
        digit[i] = (int8_t)((int)window - (carried ? 32 : 0));
        i += 4; /* these bits are done */
    }
    return 0; /* scalars are below 2^253, so nothing is carried out of the 256 digits */
}

/* ---- The sum ---- */

static void multiples(summand table[TABLE], const point *p) {
    point sum = *p;
    summand twice;
    prepare(&table[0], p);
    double_point(&sum);
    prepare(&twice, &sum);
    sum = *p;
    for (int i = 1; i < TABLE; i++) {
        add_point(&sum, &twice, 0);
        prepare(&table[i], &sum);
    }
}

/* Adds a block of at most BLOCK products to *total. */
static int add_block(point *total, const uint8_t *scalars, const uint8_t *points, size_t n) {
    summand table[BLOCK][TABLE];
    int8_t digits[BLOCK][DIGITS];
    point sum = NEUTRAL, decoded;
    summand whole;
    int started = 0; /* before the first digit there is nothing to double */
    for (size_t j = 0; j < n; j++) {
        int fault = recode(digits[j], scalars + SIZE * j);
        if (!fault) fault = decode(&decoded, points + SIZE * j);
        if (fault) return fault;
        multiples(table[j], &decoded);
    }
    for (int i = DIGITS - 1; i >= 0; i--) {
        if (started) double_point(&sum);
        for (size_t j = 0; j < n; j++) {
            const int digit = digits[j][i];
            if (digit == 0) continue;
            add_point(&sum, &table[j][(digit < 0 ? -digit : digit) / 2], digit < 0);
            started = 1;
        }
    }
    prepare(&whole, &sum);
    add_point(total, &whole, 0);
    return 0;
}

/* Writes the encoded sum of n products and gives 0; or BAD_POINT for an invalid encoding, BAD_SCALAR for a scalar that
 * is not below the order, and writes nothing. `scalars` and `points` hold 32*n bytes each; n may be 0. */
__attribute__((visibility("default")))
int koikoi_weighted_sum(uint8_t *out, const uint8_t *scalars, const uint8_t *points, size_t n) {
    point total = NEUTRAL;
    for (size_t done = 0; done < n; done += BLOCK) {
        const size_t count = n - done < BLOCK ? n - done : BLOCK;
        const int fault = add_block(&total, scalars + SIZE * done, points + SIZE * done, count);
        if (fault) return fault;
    }
    encode(out, &total);
    return 0;
}
