//! Checks whether a JPEG's data is complete. Decoders make a picture of any bytes, so this reads all codes once without
//! decoding.
//!
//! In: a file's bytes. Out: whether every scan holds exactly the codes of its blocks (ITU-T T.81, annexes B, F and G;
//! sequential and progressive, Huffman-coded). No picture is made. Arithmetic coding, lossless pictures, and pictures
//! whose height comes late are not checked.
//! Must hold: PICTURE-2: nothing beyond the bytes is read, whatever they contain.

/// The data breaks the format's rules.
#[derive(Debug)]
pub(super) struct Damaged;

/// How much of a picture was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// All codes, up to the end marker. Bytes behind it are no part of the picture.
    AllCodes,
    /// Only the headers, which tell that this kind of picture is not checked.
    HeadersOnly,
}

type Checked<T> = Result<T, Damaged>;

/// The most bytes that some encoders leave behind a scan's last code.
const STRAY_BYTES_MAX: usize = 2;
/// A coefficient of 8-bit samples is at most 1024 before it is divided by its step. Some encoders overshoot white.
const COEFFICIENT_MAX: i64 = 1536;

/// Maps the next 16 bits to the length and symbol of their code; length 0 means that there is no such code.
type Codes = Vec<(u8, u8)>;

#[derive(Clone, Debug)]
struct Component {
    id: u8,
    across: usize,
    down: usize,
    step: usize,
    /// The number of blocks in a row, including those that fill the last group.
    stride: usize,
    /// A bit for each coefficient of each block that is known to be nonzero; for refining scans.
    known: Vec<u64>,
    mean: i64,
}

#[derive(Debug, Default)]
struct Frame {
    is_progressive: bool,
    bits: u8,
    width: usize,
    height: usize,
    components: Vec<Component>,
}

/// The bits of a scan up to the next marker.
struct Bits<'a> {
    rest: &'a [u8],
    held: u64,
    count: u32,
}

impl Bits<'_> {
    fn fill(&mut self) {
        while self.count <= 48 {
            let (byte, used) = match *self.rest {
                [0xFF, 0, ..] => (0xFF, 2),
                [0xFF, ..] | [] => return,
                [byte, ..] => (byte, 1),
            };
            self.rest = &self.rest[used..];
            self.held = self.held << 8 | u64::from(byte);
            self.count += 8;
        }
    }

    fn take(&mut self, bits: u8) -> Checked<i64> {
        self.fill();
        self.count = self.count.checked_sub(u32::from(bits)).ok_or(Damaged)?;
        Ok((self.held >> self.count & ((1 << bits) - 1)) as i64)
    }

    fn symbol(&mut self, codes: &Codes) -> Checked<u8> {
        self.fill();
        let next = if self.count >= 16 { self.held >> (self.count - 16) } else { self.held << (16 - self.count) };
        let (length, symbol) = *codes.get((next & 0xFFFF) as usize).ok_or(Damaged)?;
        if length == 0 {
            return Err(Damaged);
        }
        self.take(length)?;
        Ok(symbol)
    }

    /// Reads a number of this many bits; the lower half of the range is negative.
    fn signed(&mut self, bits: u8) -> Checked<i64> {
        let value = self.take(bits)?;
        Ok(if bits > 0 && value < 1 << (bits - 1) { value - (1 << bits) + 1 } else { value })
    }

    /// Returns the position after the codes, at a marker.
    fn end(mut self) -> Checked<usize> {
        let held = self.count as usize / 8;
        let stray = self.rest.windows(2).take_while(|pair| pair[0] != 0xFF || pair[1] == 0).count();
        if held + stray > STRAY_BYTES_MAX {
            return Err(Damaged);
        }
        self.rest = &self.rest[stray..];
        // Any number of fill bytes may precede a marker (B.1.1.2).
        while let [0xFF, 0xFF, ..] = self.rest {
            self.rest = &self.rest[1..];
        }
        Ok(self.rest.len())
    }
}

#[derive(Default)]
struct Reader {
    frame: Option<Frame>,
    /// The codes of DC coefficients, and those of AC coefficients.
    codes: [[Codes; 4]; 2],
    /// The quantisation steps of all coefficients, in the order in which they are coded.
    steps: [Vec<i64>; 4],
    restart: usize,
    scans: usize,
}

/// Reads all codes of a JPEG.
pub(super) fn check(bytes: &[u8]) -> Checked<Coverage> {
    let mut reader = Reader::default();
    let mut rest = bytes.get(2..).ok_or(Damaged)?;
    loop {
        // Bytes between the parts are skipped, as decoders do.
        let at = rest.windows(2).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xFF)).ok_or(Damaged)?;
        let marker = rest[at + 1];
        rest = &rest[at + 2..];
        match marker {
            0xD9 => return if reader.scans > 0 { Ok(Coverage::AllCodes) } else { Err(Damaged) },
            0x01 | 0xD0..=0xD8 => continue,
            _ => {}
        }
        let (head, _) = rest.split_first_chunk::<2>().ok_or(Damaged)?;
        let length = usize::from(u16::from_be_bytes(*head));
        let part = rest.get(2..length).ok_or(Damaged)?;
        rest = &rest[length..];
        match marker {
            0xC4 => reader.read_codes(part)?,
            0xC0..=0xC2 if !reader.read_frame(part, marker == 0xC2)? => return Ok(Coverage::HeadersOnly),
            // These are other codings.
            0xC3 | 0xC5..=0xCF => return Ok(Coverage::HeadersOnly),
            0xDB => reader.read_steps(part)?,
            0xDD => reader.restart = usize::from(u16::from_be_bytes(*part.first_chunk().ok_or(Damaged)?)),
            0xDA => {
                let left = reader.scan(part, rest)?;
                rest = &rest[rest.len() - left..];
                reader.scans += 1;
            }
            _ => {}
        }
    }
}

impl Reader {
    fn read_codes(&mut self, mut part: &[u8]) -> Checked<()> {
        while let Some((&kind, rest)) = part.split_first() {
            let (counts, rest) = rest.split_first_chunk::<16>().ok_or(Damaged)?;
            let table = self.codes.get_mut(usize::from(kind >> 4)).ok_or(Damaged)?;
            let table = table.get_mut(usize::from(kind & 15)).ok_or(Damaged)?;
            let total = counts.iter().map(|&n| usize::from(n)).sum();
            let symbols = rest.get(..total).ok_or(Damaged)?;
            let mut codes = vec![(0, 0); 1 << 16];
            let (mut first, mut next) = (0usize, symbols.iter());
            for (length, &count) in (1u8..).zip(counts) {
                let width = 1usize << (16 - length);
                for &symbol in next.by_ref().take(usize::from(count)) {
                    codes.get_mut(first..first + width).ok_or(Damaged)?.fill((length, symbol));
                    first += width;
                }
            }
            *table = codes;
            part = &rest[total..];
        }
        Ok(())
    }

    fn read_steps(&mut self, mut part: &[u8]) -> Checked<()> {
        while let Some((&kind, rest)) = part.split_first() {
            let bytes = if kind >> 4 == 0 { 64 } else { 128 };
            let numbers = rest.get(..bytes).ok_or(Damaged)?;
            let number = |digits: &[u8]| digits.iter().fold(0, |sum, &digit| sum << 8 | i64::from(digit));
            let steps = numbers.chunks_exact(bytes / 64).map(number).collect();
            *self.steps.get_mut(usize::from(kind & 15)).ok_or(Damaged)? = steps;
            part = &rest[bytes..];
        }
        Ok(())
    }

    /// Reads a frame's header. Returns `false` if it tells too little to go on.
    fn read_frame(&mut self, part: &[u8], is_progressive: bool) -> Checked<bool> {
        let (&[bits, h1, h0, w1, w0, count], rest) = part.split_first_chunk::<6>().ok_or(Damaged)?;
        let number = |high: u8, low: u8| usize::from(u16::from_be_bytes([high, low]));
        let (width, height) = (number(w1, w0), number(h1, h0));
        if self.frame.is_some() || width == 0 || rest.len() < 3 * usize::from(count) || count == 0 {
            return Err(Damaged);
        }
        if height == 0 {
            return Ok(false);
        }
        let component = |part: &[u8]| {
            let (across, down) = (usize::from(part[1] >> 4), usize::from(part[1] & 15));
            let step = usize::from(part[2] & 3);
            Component { id: part[0], across, down, step, stride: 0, known: Vec::new(), mean: 0 }
        };
        let mut components: Vec<Component> = rest.chunks_exact(3).take(usize::from(count)).map(component).collect();
        if components.iter().any(|c| !(1..=4).contains(&c.across) || !(1..=4).contains(&c.down)) {
            return Err(Damaged);
        }
        let mut frame = Frame { is_progressive, bits, width, height, components: Vec::new() };
        let (across, down) = extents(&components);
        for component in &mut components {
            component.stride = width.div_ceil(8 * across) * component.across;
            if is_progressive {
                component.known = vec![0; component.stride * height.div_ceil(8 * down) * component.down];
            }
        }
        frame.components = components;
        self.frame = Some(frame);
        Ok(true)
    }

    /// Reads one scan, and returns how many bytes are left behind it.
    fn scan(&mut self, part: &[u8], data: &[u8]) -> Checked<usize> {
        let mut frame = self.frame.take().ok_or(Damaged)?;
        let (&count, rest) = part.split_first().ok_or(Damaged)?;
        let count = usize::from(count);
        let chosen = rest.get(..2 * count).ok_or(Damaged)?;
        let &[from, to, bits] = rest.get(2 * count..2 * count + 3).and_then(|b| b.first_chunk()).ok_or(Damaged)?;
        let band = match frame.is_progressive {
            true => Band { from, to, refines: bits >> 4 > 0, low: bits & 15, run: 0 },
            false => Band { from: 0, to: 63, refines: false, low: 0, run: 0 },
        };
        if band.from > band.to || band.to > 63 || (frame.is_progressive && band.from == 0 && band.to > 0) {
            return Err(Damaged);
        }
        let mut parts = Vec::new();
        for choice in chosen.chunks_exact(2) {
            let component = frame.components.iter().position(|c| c.id == choice[0]).ok_or(Damaged)?;
            let means = self.codes[0].get(usize::from(choice[1] >> 4)).ok_or(Damaged)?;
            let others = self.codes[1].get(usize::from(choice[1] & 15)).ok_or(Damaged)?;
            parts.push((component, means, others));
        }
        let left = self.groups(&mut frame, &parts, band, data)?;
        self.frame = Some(frame);
        Ok(left)
    }

    fn groups(
        &self,
        frame: &mut Frame,
        parts: &[(usize, &Codes, &Codes)],
        mut band: Band,
        data: &[u8],
    ) -> Checked<usize> {
        let (across, down) = extents(&frame.components);
        let (mut columns, mut rows) = (frame.width.div_ceil(8 * across), frame.height.div_ceil(8 * down));
        let alone = matches!(parts, [_]);
        if let [(c, ..)] = parts {
            // A component that has a scan alone has no blocks that only fill a group.
            let c = &frame.components[*c];
            columns = (frame.width * c.across).div_ceil(across).div_ceil(8);
            rows = (frame.height * c.down).div_ceil(down).div_ceil(8);
        }
        frame.components.iter_mut().for_each(|c| c.mean = 0);
        let mut bits = Bits { rest: data, held: 0, count: 0 };
        for group in 0..columns * rows {
            if self.restart > 0 && group > 0 && group % self.restart == 0 {
                let left = bits.end()?;
                let number = 0xD0 + ((group / self.restart - 1) % 8) as u8;
                let rest = &data[data.len() - left..];
                if rest.get(..2) != Some(&[0xFF, number]) || band.run > 0 {
                    return Err(Damaged);
                }
                bits = Bits { rest: &rest[2..], held: 0, count: 0 };
                frame.components.iter_mut().for_each(|c| c.mean = 0);
            }
            for &(c, means, others) in parts {
                let (is_progressive, has_bytes) = (frame.is_progressive, frame.bits == 8);
                let component = &mut frame.components[c];
                let steps = Some(&self.steps[component.step]).filter(|_| has_bytes);
                let steps = steps.map_or(&[][..], |steps| &steps[..]);
                let blocks = if alone { (1, 1) } else { (component.across, component.down) };
                for block in 0..blocks.0 * blocks.1 {
                    let column = group % columns * blocks.0 + block % blocks.0;
                    let row = group / columns * blocks.1 + block / blocks.0;
                    let place = row * component.stride + column;
                    match (is_progressive, band.from) {
                        (false, _) => {
                            component.mean(&mut bits, means, steps, 0)?;
                            let mut unseen = 0;
                            Band { from: 1, ..band }.first(&mut bits, others, &mut unseen, steps, false)?;
                        }
                        (true, 0) if band.refines => drop(bits.take(1)?),
                        (true, 0) => component.mean(&mut bits, means, steps, band.low)?,
                        (true, _) => {
                            let known = component.known.get_mut(place).ok_or(Damaged)?;
                            match band.refines {
                                true => band.refined(&mut bits, others, known)?,
                                false => band.first(&mut bits, others, known, steps, true)?,
                            }
                        }
                    }
                }
            }
        }
        if band.run > 0 { Err(Damaged) } else { bits.end() }
    }
}

/// Returns the most blocks that a component has in a group.
fn extents(components: &[Component]) -> (usize, usize) {
    let most = |of: fn(&Component) -> usize| components.iter().map(of).max().unwrap_or(1);
    (most(|c| c.across), most(|c| c.down))
}

impl Component {
    fn mean(&mut self, bits: &mut Bits<'_>, codes: &Codes, steps: &[i64], low: u8) -> Checked<()> {
        let size = bits.symbol(codes)?;
        if size > if steps.is_empty() { 15 } else { 11 } {
            return Err(Damaged);
        }
        self.mean += bits.signed(size)?;
        within(steps, 0, self.mean << low)
    }
}

/// Checks that samples can have such a coefficient.
fn within(steps: &[i64], k: u8, value: i64) -> Checked<()> {
    match steps.get(usize::from(k)) {
        Some(step) if (value * step).abs() > COEFFICIENT_MAX + step => Err(Damaged),
        _ => Ok(()),
    }
}

/// The coefficients that a scan holds, and their bits.
#[derive(Clone, Copy)]
struct Band {
    from: u8,
    to: u8,
    refines: bool,
    low: u8,
    /// The number of blocks that follow without further coefficients of the band.
    run: u64,
}

impl Band {
    fn first(&mut self, bits: &mut Bits<'_>, codes: &Codes, known: &mut u64, steps: &[i64], runs: bool) -> Checked<()> {
        if self.run > 0 {
            self.run -= 1;
            return Ok(());
        }
        let mut k = self.from;
        while k <= self.to {
            let symbol = bits.symbol(codes)?;
            let (zeros, size) = (symbol >> 4, symbol & 15);
            if size == 0 && zeros < 15 {
                if zeros > 0 && !runs {
                    return Err(Damaged);
                }
                self.run = (1 << zeros) - 1 + bits.take(zeros)? as u64;
                return Ok(());
            }
            k += zeros;
            if k > self.to || size > if steps.is_empty() { 14 } else { 10 } {
                return Err(Damaged);
            }
            within(steps, k, bits.signed(size)? << self.low)?;
            if size > 0 {
                *known |= 1 << k;
            }
            k += 1;
        }
        Ok(())
    }

    fn refined(&mut self, bits: &mut Bits<'_>, codes: &Codes, known: &mut u64) -> Checked<()> {
        let mut k = self.from;
        while self.run == 0 && k <= self.to {
            let symbol = bits.symbol(codes)?;
            let (mut zeros, size) = (symbol >> 4, symbol & 15);
            match size {
                0 if zeros < 15 => {
                    self.run = (1 << zeros) + bits.take(zeros)? as u64;
                    break;
                }
                0 => {}
                1 => drop(bits.take(1)?),
                _ => return Err(Damaged),
            }
            while k <= self.to {
                if *known >> k & 1 == 1 {
                    bits.take(1)?;
                } else if zeros == 0 {
                    break;
                } else {
                    zeros -= 1;
                }
                k += 1;
            }
            if size == 1 {
                if k > self.to {
                    return Err(Damaged);
                }
                *known |= 1 << k;
            }
            k += 1;
        }
        if self.run > 0 {
            let left = (k..=self.to).filter(|&k| *known >> k & 1 == 1).count();
            for _ in 0..left {
                bits.take(1)?;
            }
            self.run -= 1;
        }
        Ok(())
    }
}
