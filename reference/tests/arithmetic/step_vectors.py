"""Operands of single steps for which the rules of a unit matter: all exponents, zeros, specials, cancelling sums, the ends of
the range. Codes only; nothing is computed here (spec tensor-core-4.2)."""
import random

# exponent bits, fraction bits, bias; whether the largest exponent field holds infinities and NaN
LAYOUTS = {"f32": (8, 23, 127, True), "tf32": (8, 23, 127, True), "bf16": (8, 7, 127, True), "f16": (5, 10, 15, True),
           "e5m2": (5, 2, 15, True), "e4m3": (4, 3, 7, False), "e5m2_fnuz": (5, 2, 16, False), "e4m3_fnuz": (4, 3, 8, False),
           "e3m2": (3, 2, 3, False), "e2m3": (2, 3, 1, False), "e2m1": (2, 1, 1, False)}


def width(form):
    return 1 + LAYOUTS[form][0] + LAYOUTS[form][1]


class Vectors:
    """Draws steps of a unit: a dictionary with the fields of its row. `draw(i)` is the i-th, the same for the same seed."""

    def __init__(self, unit, seed):
        self.unit, self.seed = unit, seed
        self.length = int(unit["products"])
        self.operands = unit["operands"].split(",")
        self.c_form = "f16" if unit.get("accumulator") == "f16_nearest" else "f32"
        scaling = unit.get("scaling", "none")
        self.scale_form = scaling.split("_")[0] if scaling != "none" else None
        self.per_scale = int(scaling.rsplit("_", 1)[1]) if self.scale_form else 0

    def draw(self, number):
        self.random = random.Random(f"{self.unit['name']} {self.seed} {number}")
        pick = self.random
        self.a_form = pick.choice(self.operands)
        self.b_form = pick.choice(self.operands) if width(self.a_form) < 16 else self.a_form
        self.scales = [[], []]
        if self.scale_form:
            near = pick.random() < 0.8
            for side in self.scales:
                for _ in range(self.length // self.per_scale):
                    side.append(self.scale(near))
        patterns = [self.raw, self.clustered, self.ladder, self.floor, self.special, self.overflow, self.sparse, self.clustered]
        if "sum" in self.unit:
            patterns = [self.ladder, self.tie, self.edge, self.tie, self.clustered, self.special, self.grids, self.far, self.floor,
                        self.grids, self.tie, self.overflow, self.tie, self.raw, self.edge, self.zeros]
        a, b, c = patterns[number % len(patterns)]()
        return self.a_form, self.b_form, a, b, c, self.scales

    def scale(self, near):
        if self.scale_form == "e8m0":
            return self.random.randint(110, 140) if near else self.random.randrange(256)
        return self.random.randint(0x18, 0x60) if near else self.random.randrange(256)

    def code(self, form, exponent, negative=None, fraction=None):
        """A finite code whose exponent field is `exponent`, moved into range."""
        bits, fraction_bits, _, ieee = LAYOUTS[form]
        top = (1 << bits) - (2 if ieee else 1)
        exponent = min(max(exponent, 0), top)
        fraction = self.random.getrandbits(fraction_bits) if fraction is None else fraction & ((1 << fraction_bits) - 1)
        if form == "e4m3" and exponent == top and fraction == 7:
            fraction = 6
        negative = self.random.random() < 0.5 if negative is None else negative
        code = int(negative) << (bits + fraction_bits) | exponent << fraction_bits | fraction
        return 0 if form.endswith("fnuz") and code == 0x80 else code

    def raw(self):
        pick = self.random
        return ([pick.getrandbits(width(self.a_form)) for _ in range(self.length)],
                [pick.getrandbits(width(self.b_form)) for _ in range(self.length)], pick.getrandbits(width(self.c_form)))

    def c_near(self, exponent):
        """C near 2^exponent, often with few bits."""
        bits, fraction_bits, bias, _ = LAYOUTS[self.c_form]
        fraction = self.random.getrandbits(fraction_bits)
        if self.random.random() < 0.5:
            fraction &= self.random.getrandbits(fraction_bits)
        field = exponent + bias
        if field <= 0:
            return self.code(self.c_form, 0, fraction=max(fraction >> min(-field + 1, fraction_bits), 1))
        return self.code(self.c_form, field, fraction=fraction)

    def clustered(self):
        """Exponents within a few of a centre, a pair that cancels exactly, C within the window."""
        pick = self.random
        centres, codes = [], []
        for form in (self.a_form, self.b_form):
            bits, _, bias, _ = LAYOUTS[form]
            spread = pick.randint(0, min(6, 1 << (bits - 1)))
            centre = pick.randint(0, (1 << bits) - 2)
            codes.append([self.code(form, centre + pick.randint(-spread, spread)) for _ in range(self.length)])
            centres.append(max(centre, 1) - bias)
        a, b = codes
        if self.length > 1 and pick.random() < 0.8:
            i, j = pick.sample(range(self.length), 2)
            a[j], b[j] = a[i], b[i] ^ 1 << (width(self.b_form) - 1)
            if self.b_form.endswith("fnuz") and b[j] == 0x80:
                b[j] = 0
        c = 0 if pick.random() < 0.2 else self.c_near(sum(centres) + pick.randint(-36, 8))
        return a, b, c

    def ladder(self):
        """One large product and its opposite, then ever smaller ones: shows how many bits are kept, and how they are cut."""
        pick = self.random
        one_a, one_b = LAYOUTS[self.a_form][2], LAYOUTS[self.b_form][2]
        a, b = [0] * self.length, [0] * self.length
        for k in range(self.length):
            down = 0 if k < 2 else pick.randint(0, 20)
            a[k] = self.code(self.a_form, one_a + 4 - down // 2, negative=False, fraction=pick.choice([0, 0, 1, 1 << 30, None]))
            b[k] = self.code(self.b_form, one_b + 4 - (down + 1) // 2, fraction=pick.choice([0, 0, 1, 1 << 30, None]))
        if self.length > 1:
            a[1], b[1] = a[0], b[0] ^ 1 << (width(self.b_form) - 1)
            if self.b_form.endswith("fnuz") and b[1] == 0x80:
                b[1] = 0
        c = pick.choice([0, self.c_near(pick.randint(-34, 10)), self.c_near(pick.randint(-40, 4))])
        return a, b, c

    def floor(self):
        """Small products, C often 0."""
        pick = self.random
        a = [self.code(self.a_form, pick.randint(0, 1 + (1 << LAYOUTS[self.a_form][0]) // 3)) for _ in range(self.length)]
        b = [self.code(self.b_form, pick.randint(0, 2)) for _ in range(self.length)]
        c = pick.choice([0, 0, 1 << (width(self.c_form) - 1), self.c_near(-140), self.c_near(-126)])
        return a, b, c

    def special(self):
        pick = self.random
        a, b, c = self.sparse()

        def odd(form):
            bits, fraction_bits, _, ieee = LAYOUTS[form]
            infinity = ((1 << bits) - 1) << fraction_bits
            if form.endswith("fnuz"):
                return pick.choice([0x80, 0x80, 0x7F, 0])
            if not ieee:
                return pick.choice([infinity | ((1 << fraction_bits) - 1), 0])
            sign = pick.getrandbits(1) << (width(form) - 1)
            return sign | pick.choice([infinity, infinity, infinity | 1 << (fraction_bits - 1), infinity | 1, 0])

        for _ in range(pick.randint(1, 2)):
            k = pick.randrange(self.length)
            where = pick.randrange(3)
            if where == 0:
                a[k] = odd(self.a_form)
            elif where == 1:
                b[k] = odd(self.b_form)
            else:
                c = odd(self.c_form)
        if self.scale_form and pick.random() < 0.3:
            side = pick.choice(self.scales)
            side[pick.randrange(len(side))] = pick.choice([0xFF, 0x7F, 0, 0x80])
        return a, b, c

    def overflow(self):
        """Sums near the end of the range of C."""
        pick = self.random
        a, b, c = self.clustered()
        k = pick.randrange(self.length)
        a[k] = self.code(self.a_form, 1 << 20)
        b[k] = self.code(self.b_form, LAYOUTS[self.b_form][2] + pick.randint(-2, 2))
        bits, fraction_bits, _, _ = LAYOUTS[self.c_form]
        c = self.code(self.c_form, (1 << bits) - 2 - pick.randint(0, 2), fraction=-1 << pick.randint(0, 10))
        return a, b, c

    def power(self, exponent, negative):
        """Codes of a and b whose product is 2^exponent, or as near to it as possible."""
        a_bias, b_bias = LAYOUTS[self.a_form][2], LAYOUTS[self.b_form][2]
        first = exponent // 2 + self.random.randint(-2, 2)
        return (self.code(self.a_form, first + a_bias, negative=negative, fraction=0),
                self.code(self.b_form, exponent - first + b_bias, negative=False, fraction=0))

    def places(self, products):
        """A step with these products at random places; the rest are zero."""
        a, b = [0] * self.length, [0] * self.length
        for k, product in zip(self.random.sample(range(self.length), min(len(products), self.length)), products):
            a[k], b[k] = product
        return a, b

    def tie(self):
        """C, half a unit of its last place, and a far smaller product, which decides the rounding if it is kept."""
        pick = self.random
        exponent = pick.choice([-126, -126, pick.randint(-100, 100)]) if LAYOUTS[self.a_form][2] == 127 else pick.randint(2, 18)
        c = self.code(self.c_form, exponent + LAYOUTS[self.c_form][2])
        if exponent == -126 and pick.random() < 0.7:  # subnormal
            c = pick.getrandbits(1) << 31 | pick.getrandbits(pick.randint(1, 23))
        below = pick.choice([6, 7, 7, 7, 8, 8, 8, 9, 9, pick.randint(1, 14)])
        a, b = self.places([self.power(exponent - 24, pick.getrandbits(1)), self.power(exponent - 24 - below, pick.getrandbits(1))])
        return a, b, c

    def grids(self):
        """A large product, and small ones about the last bit of its grid."""
        pick = self.random
        top = pick.randint(0, 6)
        products = [self.power(top - pick.choice([22, 23, 24, 24, 25, 25, 26]), pick.random() < 0.7) for _ in range(2)]
        a, b = self.places([self.power(top, False)] + products)
        return a, b, pick.choice([0, 0, self.c_near(top - 20)])

    def far(self):
        """Products about 2^0 and a C far below or above them."""
        pick = self.random
        a, b = self.places([self.power(pick.randint(-2, 2), pick.getrandbits(1)) for _ in range(pick.randint(1, 3))])
        return a, b, self.c_near(pick.choice([-24, -25, -26, -27, 30, 31, 32, 33, 34, -60]) + pick.randint(-2, 2))

    def edge(self):
        """Sums about the smallest normal f32."""
        pick = self.random
        products = []
        for _ in range(pick.randint(1, 4)):
            a, b = self.power(-126 + pick.randint(-4, 3), pick.getrandbits(1))
            products.append((a | pick.getrandbits(LAYOUTS[self.a_form][1] - 1), b | pick.getrandbits(1)))
        a, b = self.places(products)
        return a, b, pick.choice([0, self.c_near(-126), self.c_near(-127), self.c_near(-125)])

    def zeros(self):
        """Zeros of both signs, and a C that is one or subnormal."""
        pick = self.random
        fnuz = self.a_form.endswith("fnuz")
        a, b = ([0 if fnuz else pick.getrandbits(1) << (width(form) - 1) for _ in range(self.length)]
                for form in (self.a_form, self.b_form))
        c = pick.choice([0, pick.getrandbits(LAYOUTS[self.c_form][1])])
        return a, b, pick.getrandbits(1) << (width(self.c_form) - 1) | c

    def sparse(self):
        """Most products zero, of either sign."""
        pick = self.random
        a, b, c = self.clustered()
        for k in range(self.length):
            if pick.random() < 0.7:
                zero = 0 if self.a_form.endswith("fnuz") else pick.getrandbits(1) << (width(self.a_form) - 1)
                a[k] = zero
        if pick.random() < 0.3:
            c = pick.getrandbits(1) << (width(self.c_form) - 1)
        return a, b, c
