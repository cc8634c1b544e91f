// Keeps the queue page up to date and takes the visitor in.
//
// Asks /.sluice/ROOM/status when told to, shows what it says, and loads the page anew once the
// answer has set the pass. What is due is kept as a moment, not as a running timer, so that sleep,
// a frozen tab and a page that comes back from the history all ask at once when they wake.
//
// It is in pages of other designs too (the partial sluice_script): an element that a page does not
// have is not filled (a heading h1 it must have), and a state that it does not show, which is one
// that no `data-for` names, loads the page anew.
//
// A page without a place (full, rejected, closed on arrival) asks too, and is told that it has
// none: it is itself loaded again then, but not while there is no network, which would lose it.
(() => {
	'use strict';
	const SLOWEST_S = 60, PATIENCE_MS = 15000, SAY_MS = 60000;
	const body = document.body, root = document.documentElement, lang = root.lang;
	const given = document.currentScript.dataset, nowhere = document.createElement('p');
	const id = name => document.getElementById(name) || nowhere.firstChild;
	nowhere.appendChild(document.createElement('p'));
	const bar = id('progress');
	const own = '/.sluice/' + given.room.trim();
	const group = given.numbers[0], point = given.numbers[1];
	let state = given.state.trim(), pollAfter = +given.poll;
	let due, failures = 0, busy = false, leaving = false, saidAt = 0;
	let opens = +given.opens, now = +given.now, nowAt = Date.now();
	let aheadAtFirst = +id('ahead').textContent.split(group).join('') || 0;
	id('codes').href = own + '/code';
	const leftAtFirst = 1 - (bar.value || 0) / 1000;

	const number = n => n == null ? '–' : n.toLocaleString('en').split(',').join(group);
	const decimal = n => String(n).replace('.', point);
	const shown = name => document.querySelector('[data-for~=' + name + '] h1');
	const heading = () => (shown(state) || document.querySelector('h1')).textContent;
	const labelled = name => document.getElementById(name) ?
		'. ' + id(name).parentNode.innerText.replace('\n', ': ') : '';

	// The same words for the same seconds as put_wait() of page.c finds.
	function wait(eta) {
		if (!eta)
			return given.unknown;
		if (eta.high < 60)
			return given.soon;
		let pattern = given.days, unit = 86400, one = 1;
		if (eta.high <= 5400) {
			pattern = given.minutes;
			unit = 60;
		} else if (eta.high <= 129600) {
			pattern = given.hours;
			unit = 1800;
			one = 2;
		}
		const low = Math.max(1, Math.floor(eta.low / unit));
		const high = Math.max(low + 1, Math.ceil(eta.high / unit));
		return pattern.replace('#', decimal(low / one)).replace('#', decimal(high / one));
	}

	// To the opening, by the server's clock; this one's only says how long ago it was asked.
	function countdown() {
		const left = Math.max(0, Math.round(opens - now - (Date.now() - nowAt) / 1000));
		const two = n => String(n % 60).padStart(2, '0');
		const text = Math.floor(left / 3600) + ':' + two(Math.floor(left / 60)) + ':';
		id('countdown').textContent =
			state == 'prequeue' && !left ? given.moment : text + two(left);
	}

	// Read aloud: a new state at once, the numbers once a minute.
	function say(isNew) {
		if (!isNew && Date.now() - saidAt < SAY_MS)
			return;
		saidAt = Date.now();
		let text = heading();
		if (state == 'waiting')
			text += labelled('ahead') + labelled('wait');
		id('live').textContent = text;
	}

	function show(status) {
		const isNew = status.state != state;
		if (isNew && !shown(status.state))
			return reload();
		body.dataset.state = state = status.state;
		opens = status.opens;
		now = status.now;
		nowAt = Date.now();
		countdown();
		id('place').textContent = number(status.position);
		id('ahead').textContent = number(status.ahead);
		id('wait').textContent = wait(status.eta);
		id('message').textContent = status.message;
		id('message').parentNode.hidden = !status.message;
		aheadAtFirst = aheadAtFirst || status.ahead;
		if (status.ahead != null) {
			const left = status.ahead && Math.min(1, status.ahead / aheadAtFirst);
			bar.value = 1000 - 1000 * leftAtFirst * left;
		}
		const place = state == 'waiting' ? number(status.position) + ' · ' : '';
		document.title = place + heading();
		say(isNew);
	}

	function schedule(seconds) {
		due = Date.now() + seconds * 1000 * (1 + Math.random() / 10);
	}

	function connected(yes) {
		failures = yes ? 0 : failures + 1;
		id('offline').hidden = yes;
		root.classList.toggle('off', !yes);
		if (yes)
			id('time').textContent = new Date().toLocaleTimeString(lang);
		else
			schedule(Math.min(SLOWEST_S, Math.max(pollAfter, 2 ** failures)));
	}

	function reload() {
		leaving = true;
		location.reload();
	}

	// The place is not known here. Once, that is a cookie that was deleted, and the page joins
	// again. Twice without a place seen between, cookies are not kept, and turning round for
	// ever would not help. (A browser that keeps none may keep no storage either, and says so
	// only when it is used.)
	function lost() {
		let again = !navigator.cookieEnabled;
		try {
			again = again || sessionStorage.sluiceLost;
			sessionStorage.sluiceLost = 1;
		} catch {
			again = true;
		}
		if (!again)
			return reload();
		id('cookies').hidden = false;
		schedule(SLOWEST_S);
	}

	function found() {
		id('cookies').hidden = true;
		try {
			sessionStorage.removeItem('sluiceLost');
		} catch {
			// Nothing was kept.
		}
	}

	async function ask() {
		const stop = new AbortController();
		const timer = setTimeout(() => stop.abort(), PATIENCE_MS);
		try {
			const answer = await fetch(own + '/status', {cache: 'no-store',
				signal: stop.signal, headers: {accept: 'application/json'}});
			if (answer.status == 401 || answer.status == 404) {
				connected(true);
				if (state == 'waiting' || state == 'next' || state == 'prequeue')
					lost();
				else
					reload();
			} else if (answer.ok || answer.status == 410) {
				const status = await answer.json();
				connected(true);
				found();
				schedule(pollAfter = status.poll_after);
				if (status.state == 'admitted')
					reload();
				else
					show(status);
			} else {
				connected(false);
			}
		} catch {
			connected(false);
		}
		clearTimeout(timer);
	}

	// Every second, and whenever the page wakes. If what is due lies too far ahead, the clock
	// was set back.
	async function tick() {
		countdown();
		const left = due - Date.now();
		if (busy || leaving || state == 'expired' || left > 0 && left < 2000 * SLOWEST_S)
			return;
		busy = true;
		await ask();
		busy = false;
	}

	addEventListener('online', () => {
		if (failures)
			due = 0;
		tick();
	});
	addEventListener('pageshow', () => {
		leaving = false;
		tick();
	});
	document.addEventListener('visibilitychange', tick);
	// Those to this very page, which would lose its fragment. False: they are not followed.
	for (const link of document.querySelectorAll('[href=""]'))
		link.onclick = () => !!reload();
	id('host').textContent = location.host;
	schedule(pollAfter);
	connected(true);
	setInterval(tick, 1000);
})();
